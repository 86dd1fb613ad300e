//===- RowOutputTest.cpp - Producers that write int8 or bf16 --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A producer with parameter `output` leaves the bits that quantize_rows or
// cast_rows makes of its f32 rows.
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Affine.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

static constexpr int kRows = 5;

static int codeStride(int k) {
  return (((k + 15) / 16 * 16 + 63) / 64 | 1) * 64;
}
static int pairStride(int k) { return (((k + 1) / 2 * 4 + 63) / 64 | 1) * 32; }

/// `params` ends before the brace; `inputs` are the producer's buffers.
static void check(const std::string &cpu, const std::string &family,
                  const std::string &params,
                  const std::vector<const void *> &inputs, int dim,
                  int groupSize) {
  std::string what = cpu + " " + family + " of " + std::to_string(dim);
  std::string group = entry("group_size", groupSize) +
                      entry("scale_group", 2 * groupSize) + "zero = 8 : i64}",
              k = entry("k", dim);
  CompiledKernel plain(family, params + "}", cpu);
  CompiledKernel toInt8(family, params + ", output = \"int8\", " + group, cpu);
  CompiledKernel toBF16(family, params + ", output = \"bf16\"}", cpu);
  CompiledKernel quantize("quantize_rows", "{" + k + group, cpu);
  CompiledKernel cast("cast_rows", "{k = " + std::to_string(dim) + " : i64}",
                      cpu);
  Buffer<float> rows(kRows * dim, NAN);
  auto run = [&](const CompiledKernel &kernel,
                 std::vector<const void *> buffers,
                 std::initializer_list<const void *> outputs) {
    buffers.insert(buffers.end(), outputs);
    kernel.call(kRows, buffers, {kRows}, 0, kRows);
  };
  run(plain, inputs, {rows.data()});
  int groups = (dim - 1) / groupSize + 1;
  Buffer<int8_t> codes(kRows * codeStride(dim), 3),
      fusedCodes(kRows * codeStride(dim), 3);
  Buffer<float> scales(kRows * groups, NAN), fusedScales(kRows * groups, NAN);
  Buffer<int32_t> offsets(kRows * groups, 1), fusedOffsets(kRows * groups, 2);
  run(quantize, {rows.data()}, {codes.data(), scales.data(), offsets.data()});
  run(toInt8, inputs,
      {fusedCodes.data(), fusedScales.data(), fusedOffsets.data()});
  EXPECT_EQ(0, std::memcmp(codes.data(), fusedCodes.data(), codes.size()))
      << what;
  EXPECT_EQ(0,
            std::memcmp(scales.data(), fusedScales.data(), scales.size() * 4))
      << what;
  EXPECT_EQ(
      0, std::memcmp(offsets.data(), fusedOffsets.data(), offsets.size() * 4))
      << what;
  Buffer<uint16_t> narrow(kRows * pairStride(dim), 3),
      fusedNarrow(kRows * pairStride(dim), 3);
  run(cast, {rows.data()}, {narrow.data()});
  run(toBF16, inputs, {fusedNarrow.data()});
  EXPECT_EQ(0,
            std::memcmp(narrow.data(), fusedNarrow.data(), narrow.size() * 2))
      << what;
}

TEST(RowOutput, FusedIsApart) {
  for (const std::string &cpu : testedCPUs())
    for (auto [dim, groupSize] :
         {std::pair{1, 32}, {83, 32}, {128, 64}, {97, 1 << 20}}) {
      Buffer<float> a = randomFloats(kRows * dim, 1, 3),
                    b = randomFloats(kRows * dim, 2), gain = b;
      // A row of zeros, one of denormals, one with a large element.
      for (int i = 0; i < dim; ++i) {
        a[dim + i] = 0;
        a[2 * dim + i] = 1e-41f;
      }
      a[3 * dim] = 1e15f;
      std::string norm = "{" + entry("dim", dim) + "epsilon = 1.0e-5 : f64";
      check(cpu, "rms_norm", norm, {a.data(), gain.data()}, dim, groupSize);
      check(cpu, "layer_norm", norm + ", bias = true",
            {a.data(), gain.data(), b.data()}, dim, groupSize);
      check(cpu, "elementwise",
            "{" + entry("width", dim) +
                "ops = [\"in0\", \"silu\", \"in1\", \"mul\"]",
            {a.data(), b.data()}, dim, groupSize);
    }
}
