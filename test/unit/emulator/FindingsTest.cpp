//===- FindingsTest.cpp - Damaged kernels are found out -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels as generated, with one operation taken out before they are lowered,
// and small kernels written to be wrong.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "test/unit/emulator/EmulatedKernel.h"
#include "test/unit/kernels/Harness.h"

#include <gmock/gmock.h>

using namespace llm::test;
using llm::runtime::Finding;
using testing::HasSubstr;

using Dims = llm::runtime::Dim3;

/// Whether the operation, or one it became part of, was built as `label`.
static bool isLabelled(mlir::Operation *op, llvm::StringRef label) {
  auto name = mlir::dyn_cast<mlir::NameLoc>(op->getLoc());
  return name && name.getName() == label;
}

static void removeBarriers(mlir::gpu::GPUFuncOp func) {
  int removed = 0;
  func.walk([&](mlir::gpu::BarrierOp barrier) {
    barrier.erase();
    ++removed;
  });
  ASSERT_EQ(removed, 1);
}

/// Runs the body of the scf.if labelled `label` whatever its condition.
static void removeGuard(mlir::gpu::GPUFuncOp func, llvm::StringRef label) {
  mlir::scf::IfOp guard;
  func.walk([&](mlir::scf::IfOp op) {
    if (isLabelled(op, label))
      guard = op;
  });
  ASSERT_TRUE(guard) << "no guard is labelled so";
  ASSERT_EQ(guard.getNumResults(), 0u);
  mlir::Block *body = guard.thenBlock();
  body->getTerminator()->erase();
  guard->getBlock()->getOperations().splice(guard->getIterator(),
                                            body->getOperations());
  guard.erase();
}

static std::string linearParams(int n, int k) {
  std::string size = "n = " + std::to_string(n) +
                     " : i64, k = " + std::to_string(k) + " : i64";
  return "{" + size + ", bias = false, layout = {kind = \"gpu_affine\", " +
         size + ", bits = 4 : i64, group_size = 32 : i64, scale_type = f32}}";
}

/// Words of a gpu_affine weight with groups of 32 and no zeros.
static size_t linearWords(int n, int k) {
  return static_cast<size_t>((n + 7) / 8) * ((k + 127) / 128) * 160;
}

//===----------------------------------------------------------------------===//
// The generated kernels, damaged
//===----------------------------------------------------------------------===//

TEST(Emulator, RMSNormWithoutBarrierRaces) {
  EmulatedKernel kernel = EmulatedKernel::generate(
      "rms_norm", "{dim = 576 : i64, epsilon = 1.0e-5 : f64}", removeBarriers);
  Buffer<float> x = randomFloats(576, 1), scale = randomFloats(576, 2),
                out(576);
  auto finding =
      kernel.launch(1, {operand(x), operand(scale), operand(out)}, 2, {1});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Race);
  EXPECT_EQ(finding->kernel, "k");
  EXPECT_EQ(finding->block, (Dims{0, 0, 0}));
  EXPECT_EQ(finding->thread, (Dims{1, 0, 0}));
  EXPECT_EQ(finding->location, "sum over the warps in test.mlir:2:1");
  EXPECT_EQ(finding->message,
            "it reads byte 0 of shared memory, which thread (0, 0, 0) wrote at "
            "'store of a warp's sum in test.mlir:2:1', with no barrier "
            "between");
}

TEST(Emulator, LinearWithoutBarrierRaces) {
  EmulatedKernel kernel =
      EmulatedKernel::generate("linear", linearParams(16, 256), removeBarriers);
  Buffer<float> x = randomFloats(256, 1), out(16);
  Buffer<uint32_t> weight(linearWords(16, 256));
  auto finding =
      kernel.launch(2, {operand(x), operand(weight), operand(out)}, 2, {1});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Race) << finding->toString();
  EXPECT_EQ(finding->kernel, "k");
  EXPECT_THAT(finding->toString(),
              HasSubstr("in kernel 'k', block (0, 0, 0), thread ("));
  EXPECT_THAT(finding->toString(), HasSubstr("test.mlir:2:1"));
}

TEST(Emulator, LinearWithoutGuardWritesOutOfBounds) {
  EmulatedKernel kernel = EmulatedKernel::generate(
      "linear", linearParams(13, 64), [](mlir::gpu::GPUFuncOp func) {
        removeGuard(func, "guard of the last panel");
      });
  Buffer<float> x = randomFloats(64, 1), out(13);
  Buffer<uint32_t> weight(linearWords(13, 64));
  auto finding =
      kernel.launch(2, {operand(x), operand(weight), operand(out)}, 2, {1});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::OutOfBounds);
  EXPECT_EQ(finding->kernel, "k");
  EXPECT_EQ(finding->block, (Dims{1, 0, 0}));
  EXPECT_EQ(finding->thread, (Dims{5, 0, 0}));
  EXPECT_EQ(finding->location, "out in test.mlir:2:1");
  EXPECT_EQ(finding->message,
            "it writes 4 bytes at byte 52 of operand 2, which has 52");
  EXPECT_TRUE(out.intact());
}

TEST(Emulator, LinearWithoutGuardRacesBetweenBlocks) {
  // With a row more, the same stores land in the next row, which other blocks
  // write.
  EmulatedKernel kernel = EmulatedKernel::generate(
      "linear", linearParams(13, 64), [](mlir::gpu::GPUFuncOp func) {
        removeGuard(func, "guard of the last panel");
      });
  Buffer<float> x = randomFloats(2 * 64, 1), out(2 * 13);
  Buffer<uint32_t> weight(linearWords(13, 64));
  auto finding =
      kernel.launch(4, {operand(x), operand(weight), operand(out)}, 2, {2});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Race) << finding->toString();
  EXPECT_EQ(finding->block, (Dims{2, 0, 0}));
  EXPECT_EQ(finding->thread, (Dims{0, 0, 0}));
  EXPECT_THAT(finding->message,
              HasSubstr("thread (5, 0, 0) of block (1, 0, 0)"));
}

TEST(Emulator, LinearWithTooLargeGridIsGuarded) {
  EmulatedKernel kernel =
      EmulatedKernel::generate("linear", linearParams(13, 64));
  Buffer<float> x = randomFloats(64, 1), out(13);
  Buffer<uint32_t> weight(linearWords(13, 64));
  auto finding =
      kernel.launch(5, {operand(x), operand(weight), operand(out)}, 2, {1});
  EXPECT_FALSE(finding) << finding->toString();
}

TEST(Emulator, RowsThatAreNotAlignedAreFound) {
  EmulatedKernel kernel = EmulatedKernel::generate(
      "rms_norm", "{dim = 64 : i64, epsilon = 1.0e-5 : f64}");
  Buffer<float> x(65), scale(64), out(64);
  Operand shifted{x.data() + 1, 64 * sizeof(float)};
  auto finding =
      kernel.launch(1, {shifted, operand(scale), operand(out)}, 2, {1});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Misaligned);
  EXPECT_THAT(finding->location, HasSubstr("squares of x"));
  EXPECT_EQ(finding->message, "its address is not a multiple of 16");
}

TEST(Emulator, ShortOperandsAreFound) {
  EmulatedKernel kernel = EmulatedKernel::generate(
      "rms_norm", "{dim = 64 : i64, epsilon = 1.0e-5 : f64}");
  Buffer<float> x(2 * 64), scale(64), out(2 * 64);
  Operand half{x.data(), 64 * sizeof(float)};
  auto finding = kernel.launch(2, {half, operand(scale), operand(out)}, 2, {2});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::OutOfBounds);
  EXPECT_EQ(finding->block, (Dims{1, 0, 0}));
  EXPECT_EQ(finding->message,
            "it reads 16 bytes at byte 256 of operand 0, which has 256");
}

TEST(Emulator, WritesToWhatTheDispatchReadsAreFound) {
  EmulatedKernel kernel = EmulatedKernel::generate(
      "rms_norm", "{dim = 64 : i64, epsilon = 1.0e-5 : f64}");
  Buffer<float> x(64), scale(64), out(64);
  auto finding = kernel.launch(1, {operand(x), operand(scale), operand(out)},
                               /*numReads=*/3, {1});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::ReadOnly);
  EXPECT_EQ(finding->message, "operand 2 is only read by the dispatch");
}

//===----------------------------------------------------------------------===//
// Kernels that are wrong
//===----------------------------------------------------------------------===//

namespace {
/// A kernel @k over one buffer %x of 64 floats and 64 floats of shared memory
/// %s; %i is the thread, %b the block, %v a float.
std::string wrong(const std::string &body, int threads = 64) {
  return R"(gpu.module @m {
  gpu.func @k(%x: memref<64xf32, #gpu.address_space<global>>, %n: i64)
      workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: )" +
         std::to_string(threads) + R"(, 1, 1>} {
    %i = gpu.thread_id x
    %b = gpu.block_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c63 = arith.constant 63 : index
    %v = arith.constant 1.0 : f32
    )" + body +
         R"(
    gpu.return
  }
})";
}

std::optional<Finding> run(const std::string &body, int64_t blocks = 1,
                           int threads = 64) {
  EmulatedKernel kernel = EmulatedKernel::parse(wrong(body, threads));
  Buffer<float> x(64);
  return kernel.launch(blocks, {operand(x)}, 0, {0});
}

constexpr const char *kGlobal = " : memref<64xf32, #gpu.address_space<global>>";
constexpr const char *kShared =
    " : memref<64xf32, #gpu.address_space<workgroup>>";
} // namespace

TEST(Emulator, UninitialisedSharedMemory) {
  auto finding = run(std::string("%w = memref.load %s[%i]") + kShared +
                     "\nmemref.store %w, %x[%i]" + kGlobal);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Uninitialised);
  EXPECT_EQ(finding->thread, (Dims{0, 0, 0}));
  EXPECT_THAT(finding->location, HasSubstr("test.mlir:12:"));
}

TEST(Emulator, TwoThreadsWriteOneElement) {
  auto finding = run(std::string("memref.store %v, %x[%c1]") + kGlobal);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Race);
  EXPECT_EQ(finding->thread, (Dims{1, 0, 0}));
  EXPECT_THAT(finding->message,
              HasSubstr("it writes byte 4 of operand 0, which thread (0, 0, 0) "
                        "wrote at 'test.mlir:12:"));
}

TEST(Emulator, WriteAfterReadWithoutBarrier) {
  // Thread 0 reads what thread 63, of another warp, writes.
  std::string body = std::string(R"(
    memref.store %v, %s[%i])") +
                     kShared + R"(
    gpu.barrier
    %first = arith.cmpi eq, %i, %c0 : index
    scf.if %first {
      %w = memref.load %s[%c63])" +
                     kShared + R"(
      memref.store %w, %x[%c0])" +
                     kGlobal + R"(
    }
    %last = arith.cmpi eq, %i, %c63 : index
    scf.if %last {
      memref.store %v, %s[%c63])" +
                     kShared + R"(
    })";
  auto finding = run(body);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Race);
  EXPECT_EQ(finding->thread, (Dims{63, 0, 0}));
  EXPECT_THAT(finding->message, HasSubstr("thread (0, 0, 0) read"));
}

TEST(Emulator, BlocksWriteOneElement) {
  auto finding = run(R"(
    %first = arith.cmpi eq, %i, %c0 : index
    scf.if %first {
      memref.store %v, %x[%c0])" +
                         std::string(kGlobal) + R"(
    })",
                     2);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Race);
  EXPECT_EQ(finding->block, (Dims{1, 0, 0}));
  EXPECT_THAT(finding->message, HasSubstr("no order between blocks"));
}

TEST(Emulator, AtomicsDoNotRace) {
  EmulatedKernel kernel = EmulatedKernel::parse(
      wrong(std::string("%old = memref.atomic_rmw addf %v, %x[%c0] : (f32, "
                        "memref<64xf32, #gpu.address_space<global>>) -> f32")));
  Buffer<float> x(64);
  auto finding = kernel.launch(3, {operand(x)}, 0, {0});
  EXPECT_FALSE(finding) << finding->toString();
  EXPECT_EQ(x[0], 3 * 64);
}

TEST(Emulator, AtomicsRaceWithPlainAccesses) {
  auto finding = run(R"(
    %old = memref.atomic_rmw addf %v, %x[%c0] : (f32, memref<64xf32, #gpu.address_space<global>>) -> f32
    %last = arith.cmpi eq, %i, %c63 : index
    scf.if %last {
      memref.store %v, %x[%c0])" +
                     std::string(kGlobal) + R"(
    })");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Race);
  EXPECT_EQ(finding->thread, (Dims{63, 0, 0}));
}

TEST(Emulator, ThreadsThatEndBeforeABarrier) {
  auto finding = run(R"(
    %low = arith.cmpi ult, %i, %c32 : index
    scf.if %low {
      gpu.barrier
    })");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Divergence);
  EXPECT_EQ(finding->thread, (Dims{0, 0, 0}));
  EXPECT_EQ(finding->message, "it waits at a barrier that thread (32, 0, 0) "
                              "does not reach: it has ended");
}

TEST(Emulator, ThreadsAtDifferentBarriers) {
  auto finding = run(R"(
    %low = arith.cmpi ult, %i, %c32 : index
    scf.if %low {
      memref.store %v, %x[%i])" +
                     std::string(kGlobal) + R"(
      gpu.barrier
    } else {
      gpu.barrier
    })");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Divergence);
  EXPECT_THAT(finding->message,
              HasSubstr("thread (32, 0, 0) waits at another one, at "
                        "'test.mlir:"));
}

TEST(Emulator, LanesAtDifferentOperations) {
  auto finding = run(R"(
    %one = arith.constant 1 : i32
    %all = arith.constant 32 : i32
    %first = arith.cmpi eq, %i, %c0 : index
    scf.if %first {
      %r, %p = gpu.shuffle xor %v, %one, %all : f32
      memref.store %r, %x[%c0])" +
                         std::string(kGlobal) + R"(
    } else {
      %r, %p = gpu.shuffle up %v, %one, %all : f32
      memref.store %r, %x[%i])" +
                         kGlobal + R"(
    })",
                     1, 32);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Divergence);
  EXPECT_THAT(finding->message, HasSubstr("another operation or mask"));
}

TEST(Emulator, WarpWaitsForALaneAtABarrier) {
  auto finding = run(R"(
    %one = arith.constant 1 : i32
    %all = arith.constant 32 : i32
    %first = arith.cmpi eq, %i, %c0 : index
    scf.if %first {
      gpu.barrier
    } else {
      %r, %p = gpu.shuffle xor %v, %one, %all : f32
      memref.store %r, %x[%i])" +
                         std::string(kGlobal) + R"(
      gpu.barrier
    })",
                     1, 32);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Divergence);
  EXPECT_THAT(finding->message, HasSubstr("waits for its warp at 'test.mlir:"));
}

TEST(Emulator, ShuffleFromALaneThatEnded) {
  auto finding = run(R"(
    %one = arith.constant 1 : i32
    %all = arith.constant 32 : i32
    %some = arith.cmpi ne, %i, %c1 : index
    scf.if %some {
      %r, %p = gpu.shuffle xor %v, %one, %all : f32
      memref.store %r, %x[%i])" +
                         std::string(kGlobal) + R"(
    })",
                     1, 32);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Divergence);
  EXPECT_EQ(finding->thread, (Dims{0, 0, 0}));
  EXPECT_EQ(finding->message, "it reads lane 1, which does not take part");
}
