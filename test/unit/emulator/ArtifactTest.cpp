//===- ArtifactTest.cpp - One artifact, two devices -----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module with a program for the CPU and the same for the emulator, compiled
// to an artifact and run by the runtime, which loads code, packed weights,
// plans and arena as it does for a model.
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Compile.h"
#include "lib/Pipeline/Register.h"
#include "runtime/device/Program.h"
#include "runtime/device/cpu/CPUDevice.h"
#include "runtime/device/emulator/EmulatorDevice.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

using namespace llm;
using namespace llm::runtime;
using llm::test::Buffer;
using llm::test::randomFloats;

namespace {

constexpr int kDim = 200, kHidden = 77, kRows = 3;

/// The dense elements of a small tensor.
std::string elements(int rows, int columns, auto element) {
  std::string text = "dense<[";
  for (int i = 0; i < rows; ++i) {
    text += i ? ", [" : "[";
    for (int j = 0; j < columns; ++j)
      text += (j ? ", " : "") + element(i, j);
    text += "]";
  }
  return text + "]>";
}

std::string affineWeight(const std::string &name, int n, int k, bool zeros) {
  int groups = (k + 31) / 32;
  auto size = [](int rows, int columns, const char *type) {
    return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) +
           "x" + type + ">";
  };
  auto component = [](const std::string &part, const std::string &type,
                      const std::string &value) {
    return part + " = #llm.component<\"" + part + "\", " + type + ", " + value +
           " : " + type + ">";
  };
  std::string text =
      "llm.weight @" + name + " : " + size(n, k, "f32") +
      " = #llm.affine<bits = 4, group_size = 32, " +
      component("data", size(n, groups * 16, "ui8"),
                elements(n, groups * 16,
                         [](int i, int j) {
                           return std::to_string((i * 37 + j * 11 + 5) % 256);
                         })) +
      ", " +
      component("scales", size(n, groups, "f32"),
                elements(n, groups, [](int i, int g) {
                  return "0." + std::to_string(10 + (i * 7 + g * 3) % 80);
                }));
  if (zeros)
    text += ", " + component("zeros", size(n, (groups + 1) / 2, "ui8"),
                             elements(n, (groups + 1) / 2, [](int i, int j) {
                               return std::to_string((i * 53 + j * 29) % 256);
                             }));
  return text + ">\n";
}

std::string program(const std::string &name, const std::string &target) {
  std::string text = R"(
rt.program @NAME target "TARGET" symbols ["T"] attributes {llm.model = "NAME", row_invariant} {
  rt.kernel @norm family "rms_norm" params {dim = 200 : i64, epsilon = 1.0e-5 : f64} { }
  rt.kernel @up family "linear" params {n = 77 : i64, k = 200 : i64, bias = false, accuracy_level = 0 : i64} { }
  rt.kernel @down family "linear" params {n = 200 : i64, k = 77 : i64, bias = true, accuracy_level = 0 : i64} { }
  %x = rt.buffer io "x" [#rt.expr<T * 200>] : !rt.buffer<f32>
  %scale = rt.buffer constant "scale" [#rt.expr<200>] : !rt.buffer<f32>
  %up = rt.buffer constant "up" [#rt.expr<15400>] : !rt.buffer<f32>
  %down = rt.buffer constant "down" [#rt.expr<15400>] : !rt.buffer<f32>
  %bias = rt.buffer constant "bias" [#rt.expr<200>] : !rt.buffer<f32>
  %a = rt.buffer transient "" [#rt.expr<T * 200>] : !rt.buffer<f32>
  %b = rt.buffer transient "" [#rt.expr<T * 77>] : !rt.buffer<f32>
  %y = rt.buffer io "y" [#rt.expr<T * 200>] : !rt.buffer<f32>
  rt.dispatch @norm grid #rt.expr<T> sizes [#rt.expr<T>]
    reads(%x, %scale : !rt.buffer<f32>, !rt.buffer<f32>) writes(%a : !rt.buffer<f32>)
  rt.dispatch @up grid #rt.expr<1> sizes [#rt.expr<T>]
    reads(%a, %up : !rt.buffer<f32>, !rt.buffer<f32>) writes(%b : !rt.buffer<f32>)
  rt.dispatch @down grid #rt.expr<1> sizes [#rt.expr<T>]
    reads(%b, %down, %bias : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
}
)";
  for (const auto &[from, to] : {std::pair{std::string("NAME"), name},
                                 std::pair{std::string("TARGET"), target}})
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  return text;
}

class TwoDevices : public testing::Test {
protected:
  static void SetUpTestSuite() {
    registerPasses();
    directory = std::filesystem::temp_directory_path() /
                ("llm-two-devices-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "in.mlir")
        << "llm.weight @scale : tensor<200xf32> = #llm.dense<#llm.component<"
           "\"data\", tensor<200xf32>, dense<0.75> : tensor<200xf32>>>\n"
        << "llm.weight @bias : tensor<200xf32> = #llm.dense<#llm.component<"
           "\"data\", tensor<200xf32>, dense<-1.5> : tensor<200xf32>>>\n"
        << affineWeight("up", kHidden, kDim, true)
        << affineWeight("down", kDim, kHidden, false)
        << program("reference", "cpu") << program("emulated", "cuda-emulator");
    mlir::DialectRegistry registry;
    registerDialects(registry);
    mlir::MLIRContext context(registry);
    CompileOptions options;
    options.input = directory / "in.mlir";
    options.output = directory / "out.llmx";
    options.startAt = Stage::Kernels;
    ASSERT_TRUE(succeeded(compile(options, context)));
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory); }

  static std::filesystem::path directory;
};
std::filesystem::path TwoDevices::directory;

/// Runs program `index` on `rows` rows of `x`; `shortBy` bytes are withheld
/// from the extent of the operands of its last dispatch.
Expected<Buffer<float>> runProgram(std::shared_ptr<const Artifact> artifact,
                                   int index, Device &device, int64_t rows,
                                   Buffer<float> &x, uint64_t shortBy = 0) {
  CodeLoader code(artifact, device);
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<Program> program,
                       Program::load(artifact, index, code));
  Symbols symbols;
  symbols[Symbols::T] = rows;
  LLM_ASSIGN_OR_RETURN(int64_t arenaBytes, program->arenaBytes(symbols));
  Buffer<char> arena(static_cast<size_t>(arenaBytes));
  Buffer<float> y(static_cast<size_t>(rows) * kDim, NAN);
  LLM_RETURN_IF_ERROR(
      program->bind({arena.data(), static_cast<uint64_t>(arenaBytes)},
                    [&](const artifact::Buffer &buffer) -> Expected<BufferRef> {
                      if (buffer.name() == "x")
                        return BufferRef{x.data(), x.size() * sizeof(float)};
                      return BufferRef{y.data(), y.size() * sizeof(float)};
                    }));
  LLM_ASSIGN_OR_RETURN(const Plan *plan, program->plan(symbols));
  std::vector<DispatchCall> calls(plan->calls().begin(), plan->calls().end());
  std::vector<uint64_t> bytes(calls.back().bytes.begin(),
                              calls.back().bytes.end());
  bytes.back() -= shortBy;
  calls.back().bytes = bytes;
  LLM_RETURN_IF_ERROR(device.run(calls, nullptr));
  EXPECT_TRUE(y.intact() && arena.intact());
  return y;
}

} // namespace

TEST_F(TwoDevices, Agree) {
  auto artifact = Artifact::open(directory / "out.llmx");
  ASSERT_TRUE(artifact) << artifact.status().toString();
  CPUDevice cpu(2);
  auto emulator = createEmulatorDevice(1);
  ASSERT_TRUE(emulator);
  Buffer<float> x = randomFloats(kRows * kDim, 4, 2);
  for (int64_t rows = 1; rows <= kRows; ++rows) {
    auto want = runProgram(*artifact, 0, cpu, rows, x);
    auto got = runProgram(*artifact, 1, **emulator, rows, x);
    ASSERT_TRUE(want) << want.status().toString();
    ASSERT_TRUE(got) << got.status().toString();
    double largest = 0;
    for (float value : *want)
      largest = std::fmax(largest, std::fabs(value));
    EXPECT_GT(largest, 1);
    for (size_t i = 0; i < want->size(); ++i)
      ASSERT_NEAR((*got)[i], (*want)[i], 2e-6 * largest) << rows << ", " << i;
  }
}

TEST_F(TwoDevices, FindingsEndTheRun) {
  auto artifact = Artifact::open(directory / "out.llmx");
  ASSERT_TRUE(artifact) << artifact.status().toString();
  auto emulator = createEmulatorDevice(1);
  ASSERT_TRUE(emulator);
  Buffer<float> x = randomFloats(kDim, 4);
  auto result = runProgram(*artifact, 1, **emulator, 1, x, /*shortBy=*/4);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.status().code(), StatusCode::Internal);
  EXPECT_THAT(result.status().message(),
              testing::HasSubstr(
                  "out-of-bounds access in kernel 'down', block (24, 0, 0), "
                  "thread (7, 0, 0), at 'out in in.mlir:"));
  EXPECT_THAT(result.status().message(),
              testing::HasSubstr("it writes 4 bytes at byte 796 of operand 3, "
                                 "which has 796"));
}
