//===- OperationsTest.cpp - What the emulator knows of a GPU --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/emulator/EmulatedKernel.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace llm::test;
using llm::runtime::Finding;
using testing::HasSubstr;

namespace {
/// A warp that computes an i32 per lane from %lane: `body` defines %result.
std::string perLane(const std::string &body) {
  return R"(gpu.module @m {
  gpu.func @k(%out: memref<32xi32, #gpu.address_space<global>>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.lane_id
    %lane = arith.index_cast %i : index to i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %width = arith.constant 32 : i32
    %all = arith.constant -1 : i32
    )" + body +
         R"(
    memref.store %result, %out[%i] : memref<32xi32, #gpu.address_space<global>>
    gpu.return
  }
})";
}

Buffer<int32_t> runPerLane(const std::string &body) {
  EmulatedKernel kernel = EmulatedKernel::parse(perLane(body));
  Buffer<int32_t> out(32);
  auto finding = kernel.launch(1, {operand(out)}, 0, {});
  EXPECT_FALSE(finding) << finding->toString();
  return out;
}
} // namespace

TEST(Emulator, Shuffles) {
  Buffer<int32_t> out =
      runPerLane("%result, %p = gpu.shuffle xor %lane, %three, %width : i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane ^ 3);
  out = runPerLane("%result, %p = gpu.shuffle up %lane, %three, %width : i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane < 3 ? lane : lane - 3);
  out =
      runPerLane("%result, %p = gpu.shuffle down %lane, %three, %width : i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane + 3 < 32 ? lane + 3 : lane);
  // Segments of 8 lanes, which gpu.shuffle has no word for: the upper bits of
  // the clamp say so.
  out =
      runPerLane("%clamp = arith.constant 0x181f : i32\n"
                 "%result = nvvm.shfl.sync down %all, %lane, %three, %clamp : "
                 "i32 -> i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane % 8 + 3 < 8 ? lane + 3 : lane);
  out = runPerLane("%clamp = arith.constant 0x181f : i32\n"
                   "%result = nvvm.shfl.sync idx %all, %lane, %three, %clamp : "
                   "i32 -> i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane / 8 * 8 + 3);
  out = runPerLane("%r, %p = gpu.shuffle down %lane, %three, %width : i32\n"
                   "%result = arith.extui %p : i1 to i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane + 3 < 32);
}

TEST(Emulator, ReductionsAndVotes) {
  struct {
    const char *kind;
    int32_t want;
  } reductions[] = {{"add", 31 * 16}, {"and", 0},   {"max", 31}, {"min", 0},
                    {"or", 31},       {"umax", 31}, {"umin", 0}, {"xor", 0}};
  for (auto [kind, want] : reductions) {
    Buffer<int32_t> out = runPerLane(std::string("%result = nvvm.redux.sync ") +
                                     kind + " %lane, %all : i32 -> i32");
    for (int lane = 0; lane < 32; ++lane)
      EXPECT_EQ(out[lane], want) << kind;
  }
  const std::string low = "%low = arith.cmpi ult, %lane, %three : i32\n";
  Buffer<int32_t> out =
      runPerLane(low + "%result = nvvm.vote.sync ballot %all, %low -> i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], 7);
  struct {
    const char *kind;
    int32_t want;
  } votes[] = {{"any", 1}, {"all", 0}, {"uni", 0}};
  for (auto [kind, want] : votes) {
    out = runPerLane(low + "%v = nvvm.vote.sync " + kind +
                     " %all, %low -> i1\n"
                     "%result = arith.extui %v : i1 to i32");
    for (int lane = 0; lane < 32; ++lane)
      EXPECT_EQ(out[lane], want) << kind;
  }
}

TEST(Emulator, RegistersOfAGrid) {
  EmulatedKernel kernel = EmulatedKernel::parse(R"(gpu.module @m {
  gpu.func @k(%out: memref<4096xi32, #gpu.address_space<global>>, %n: i64)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %d = gpu.block_dim x
    %g = gpu.grid_dim x
    %y = gpu.thread_id y
    %s = gpu.subgroup_id : index
    %base = arith.muli %b, %d : index
    %at = arith.addi %base, %t : index
    %c1000 = arith.constant 1000 : index
    %scaled = arith.muli %g, %c1000 : index
    %sum = arith.addi %scaled, %at : index
    %more = arith.addi %sum, %y : index
    %limit = arith.index_cast %n : i64 to index
    %c = arith.cmpi ult, %at, %limit : index
    scf.if %c {
      %v = arith.index_cast %more : index to i32
      memref.store %v, %out[%at] : memref<4096xi32, #gpu.address_space<global>>
    }
    gpu.return
  }
})");
  Buffer<int32_t> out(150);
  auto finding = kernel.launch(3, {operand(out)}, 0, {150});
  ASSERT_FALSE(finding) << finding->toString();
  for (int i = 0; i < 150; ++i)
    EXPECT_EQ(out[i], 3000 + i);
}

namespace {
/// One warp multiplies A [16, 16] by B [16, 8] in f16, both brought to shared
/// memory by asynchronous copies.
std::string matrixKernel(const std::string &wait) {
  return R"(gpu.module @m {
  gpu.func @k(%a: memref<16x16xf16, #gpu.address_space<global>> {llvm.align = 16 : i64},
              %b: memref<16x8xf16, #gpu.address_space<global>> {llvm.align = 16 : i64},
              %d: memref<16x8xf32, #gpu.address_space<global>>)
      workgroup(%sa: memref<16x16xf16, #gpu.address_space<workgroup>> {llvm.align = 16 : i64},
                %sb: memref<16x8xf16, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    // 16 bytes a lane: half a row of A; the lower lanes a row of B, too.
    %half = arith.divui %lane, %c2 : index
    %odd = arith.remui %lane, %c2 : index
    %column = arith.muli %odd, %c8 : index
    %t0 = nvgpu.device_async_copy %a[%half, %column], %sa[%half, %column], 8 {bypassL1}
      : memref<16x16xf16, #gpu.address_space<global>> to memref<16x16xf16, #gpu.address_space<workgroup>>
    %low = arith.cmpi ult, %lane, %c16 : index
    scf.if %low {
      %t1 = nvgpu.device_async_copy %b[%lane, %c0], %sb[%lane, %c0], 8 {bypassL1}
        : memref<16x8xf16, #gpu.address_space<global>> to memref<16x8xf16, #gpu.address_space<workgroup>>
    }
    %group = nvgpu.device_async_create_group %t0
    )" + wait +
         R"(
    %row = arith.remui %lane, %c16 : index
    %block = arith.divui %lane, %c16 : index
    %left = arith.muli %block, %c8 : index
    %fa = nvgpu.ldmatrix %sa[%row, %left] {numTiles = 4 : i32, transpose = false}
      : memref<16x16xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    %fb = nvgpu.ldmatrix %sb[%row, %c0] {numTiles = 2 : i32, transpose = true}
      : memref<16x8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
    %zero = arith.constant dense<0.0> : vector<2x2xf32>
    %p = nvgpu.mma.sync (%fa, %fb, %zero) {mmaShape = [16, 8, 16]}
      : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %r = arith.divui %lane, %c4 : index
    %r8 = arith.addi %r, %c8 : index
    %q = arith.remui %lane, %c4 : index
    %n = arith.muli %q, %c2 : index
    %n1 = arith.addi %n, %c1 : index
    %p00 = vector.extract %p[0, 0] : f32 from vector<2x2xf32>
    %p01 = vector.extract %p[0, 1] : f32 from vector<2x2xf32>
    %p10 = vector.extract %p[1, 0] : f32 from vector<2x2xf32>
    %p11 = vector.extract %p[1, 1] : f32 from vector<2x2xf32>
    memref.store %p00, %d[%r, %n] : memref<16x8xf32, #gpu.address_space<global>>
    memref.store %p01, %d[%r, %n1] : memref<16x8xf32, #gpu.address_space<global>>
    memref.store %p10, %d[%r8, %n] : memref<16x8xf32, #gpu.address_space<global>>
    memref.store %p11, %d[%r8, %n1] : memref<16x8xf32, #gpu.address_space<global>>
    gpu.return
  }
})";
}

constexpr const char *kWait =
    "nvgpu.device_async_wait %group\n nvvm.bar.warp.sync %all : i32";
constexpr const char *kAll = "%all = arith.constant -1 : i32\n";
} // namespace

TEST(Emulator, MatricesAndAsynchronousCopies) {
  EmulatedKernel kernel =
      EmulatedKernel::parse(matrixKernel(std::string(kAll) + kWait));
  Buffer<_Float16> a(16 * 16), b(16 * 8);
  for (int i = 0; i < 256; ++i)
    a[i] = static_cast<_Float16>((i * 7 % 31 - 15) / 8.0f);
  for (int i = 0; i < 128; ++i)
    b[i] = static_cast<_Float16>((i * 5 % 29 - 14) / 16.0f);
  Buffer<float> d(16 * 8, NAN);
  auto finding = kernel.launch(1, {operand(a), operand(b), operand(d)}, 2, {});
  ASSERT_FALSE(finding) << finding->toString();
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      // Multiples of 1/128 below 2^9: exact in f32 in any order.
      double want = 0;
      for (int k = 0; k < 16; ++k)
        want += double(a[m * 16 + k]) * double(b[k * 8 + n]);
      EXPECT_EQ(d[m * 8 + n], want) << m << ", " << n;
    }
}

TEST(Emulator, MatricesOfBF16) {
  // Fragments straight from memory: words of lane l at 4 l (a, c, d) and 2 l.
  std::string loads;
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    loads += "%i" + n + " = arith.constant " + n + " : index\n" + "%ai" + n +
             " = arith.addi %four, %i" + n + " : index\n" + "%a" + n +
             " = memref.load %a[%ai" + n +
             "] : memref<128xi32, #gpu.address_space<global>>\n" + "%c" + n +
             " = memref.load %c[%ai" + n +
             "] : memref<128xf32, #gpu.address_space<global>>\n";
    if (i < 2)
      loads += "%bi" + n + " = arith.addi %two, %i" + n + " : index\n%b" + n +
               " = memref.load %b[%bi" + n +
               "] : memref<64xi32, #gpu.address_space<global>>\n";
  }
  std::string stores;
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    stores += "%d" + n + " = llvm.extractvalue %p[" + n +
              "] : !llvm.struct<(f32, f32, f32, f32)>\nmemref.store %d" + n +
              ", %d[%ai" + n +
              "] : memref<128xf32, #gpu.address_space<global>>\n";
  }
  EmulatedKernel kernel = EmulatedKernel::parse(
      R"(gpu.module @m {
  gpu.func @k(%a: memref<128xi32, #gpu.address_space<global>>,
              %b: memref<64xi32, #gpu.address_space<global>>,
              %c: memref<128xf32, #gpu.address_space<global>>,
              %d: memref<128xf32, #gpu.address_space<global>>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %lane = gpu.lane_id
    %k2 = arith.constant 2 : index
    %k4 = arith.constant 4 : index
    %two = arith.muli %lane, %k2 : index
    %four = arith.muli %lane, %k4 : index
    )" +
      loads +
      R"(%p = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
      {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
       multiplicandAPtxType = #nvvm.mma_type<bf16>,
       multiplicandBPtxType = #nvvm.mma_type<bf16>,
       shape = #nvvm.shape<m = 16, n = 8, k = 16>}
      : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    )" +
      stores + "gpu.return\n}\n}");
  // Small integers are exact in bf16.
  auto a = [](int m, int k) { return (m * 7 + k * 3) % 17 - 8; };
  auto b = [](int k, int n) { return (k * 5 + n * 11) % 13 - 6; };
  auto c = [](int m, int n) { return m * 8 + n; };
  auto pair = [](float low, float high) {
    return uint32_t(BFloat16(low).bits) | uint32_t(BFloat16(high).bits) << 16;
  };
  Buffer<uint32_t> fa(128), fb(64);
  Buffer<float> fc(128), fd(128, NAN);
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane / 4, column = lane % 4 * 2;
    for (int i = 0; i < 4; ++i) {
      int m = group + (i & 1) * 8, k = column + (i >> 1) * 8;
      fa[lane * 4 + i] = pair(a(m, k), a(m, k + 1));
      fc[lane * 4 + i] = c(group + (i >> 1) * 8, column + (i & 1));
    }
    for (int i = 0; i < 2; ++i)
      fb[lane * 2 + i] =
          pair(b(column + i * 8, group), b(column + i * 8 + 1, group));
  }
  auto finding = kernel.launch(
      1, {operand(fa), operand(fb), operand(fc), operand(fd)}, 3, {});
  ASSERT_FALSE(finding) << finding->toString();
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      int m = lane / 4 + (i >> 1) * 8, n = lane % 4 * 2 + (i & 1);
      int want = c(m, n);
      for (int k = 0; k < 16; ++k)
        want += a(m, k) * b(k, n);
      EXPECT_EQ(fd[lane * 4 + i], want) << m << ", " << n;
    }
}

TEST(Emulator, CopiesThatAreNotWaitedFor) {
  EmulatedKernel kernel = EmulatedKernel::parse(
      matrixKernel(std::string(kAll) + "nvvm.bar.warp.sync %all : i32"));
  Buffer<_Float16> a(16 * 16), b(16 * 8);
  Buffer<float> d(16 * 8);
  auto finding = kernel.launch(1, {operand(a), operand(b), operand(d)}, 2, {});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Uninitialised);
}

TEST(Emulator, CopiesThatOtherLanesReadUnsynchronised) {
  EmulatedKernel kernel =
      EmulatedKernel::parse(matrixKernel("nvgpu.device_async_wait %group"));
  Buffer<_Float16> a(16 * 16), b(16 * 8);
  Buffer<float> d(16 * 8);
  auto finding = kernel.launch(1, {operand(a), operand(b), operand(d)}, 2, {});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Race) << finding->toString();
}

//===----------------------------------------------------------------------===//
// What is not emulated
//===----------------------------------------------------------------------===//

static std::string failing(const std::string &body,
                           const std::string &arguments = "") {
  return "gpu.module @m {\n gpu.func @k(" + arguments + ") kernel {\n" + body +
         "\ngpu.return }\n}";
}

TEST(EmulatorLowering, RefusesWhatItDoesNotHave) {
  EXPECT_THAT(loweringError(failing("nvvm.fence.proxy {kind = "
                                    "#nvvm.proxy_kind<async>}")),
              HasSubstr("'nvvm.fence.proxy' is not emulated"));
  EXPECT_THAT(loweringError(failing("%c = nvvm.read.ptx.sreg.clock : i32")),
              HasSubstr("the register clock is not emulated"));
  EXPECT_THAT(loweringError(failing("%c = arith.constant 64 : i32\n"
                                    "%z = arith.constant 1 : i32\n"
                                    "nvvm.barrier id = %z number_of_threads = "
                                    "%c")),
              HasSubstr("barriers of a part of the block are not emulated"));
  EXPECT_THAT(loweringError(failing("", "%x: f32")),
              HasSubstr("an emulated kernel takes buffers and i64 sizes, not "
                        "'f32'"));
  EXPECT_THAT(
      loweringError(failing(
          "%x = arith.constant 1.0 : f32\n"
          "%y = llvm.call_intrinsic \"llvm.nvvm.ex2.approx.f\"(%x) : (f32) -> "
          "f32")),
      HasSubstr("the intrinsic llvm.nvvm.ex2.approx.f is not emulated"));
}

TEST(Emulator, RefusesLaunchesThatDoNotFit) {
  EmulatedKernel compiled = EmulatedKernel::generate(
      "rms_norm", "{dim = 64 : i64, epsilon = 1.0e-5 : f64}");
  llm::runtime::Emulator emulator;
  auto message = [&](auto change) {
    llm_emulator_kernel kernel = compiled.description();
    float data[64] = {};
    void *buffers[] = {data, data, data};
    uint64_t bytes[] = {sizeof(data), sizeof(data), sizeof(data)};
    int64_t sizes[] = {1};
    llm::runtime::LaunchParams params{&kernel, {1, 1, 1}, {32, 1, 1}, buffers,
                                      bytes,   2,         sizes};
    change(params, kernel);
    auto result = emulator.launch(params);
    return result ? std::string() : result.status().message();
  };
  EXPECT_THAT(message([](auto &, auto &kernel) { ++kernel.abi_version; }),
              HasSubstr("has emulator ABI version 2, this runtime has version "
                        "1"));
  EXPECT_THAT(message([](auto &params, auto &) { params.block[0] = 64; }),
              HasSubstr("is compiled for blocks of 32 threads, not 64"));
  EXPECT_THAT(message([](auto &params, auto &) { params.block[0] = 2048; }),
              HasSubstr("a block has 1 to 1024 threads"));
  EXPECT_THAT(message([](auto &params, auto &) { params.sizes = {}; }),
              HasSubstr("takes 3 buffers and 1 sizes, not 3 and 0"));
  EXPECT_THAT(
      message([](auto &params, auto &) { params.grid[0] = int64_t(1) << 31; }),
      HasSubstr("is not within a GPU's limits"));
  EXPECT_EQ(message([](auto &, auto &) {}), "");
}
