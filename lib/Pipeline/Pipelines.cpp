//===- Pipelines.cpp - Stages as pipelines of llm-opt ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Compile.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace llm {
namespace {

struct CPUPipelineOptions : PassPipelineOptions<CPUPipelineOptions> {
  ListOption<std::string> mcpus{
      *this, "mcpu", llvm::cl::desc("Processors; see llm-compile --mcpu")};
  Option<int64_t> pageSize{*this, "page-size",
                           llvm::cl::desc("Slots a page; 0 is contiguous"),
                           llvm::cl::init(64)};
  Option<std::string> cacheType{
      *this, "cache-type",
      llvm::cl::desc("f32, f16, bf16, int8, f8E4M3FN or f8E5M2; "
                     "as the module has it where empty"),
      llvm::cl::init("")};
};

void addStages(OpPassManager &pm, std::initializer_list<Stage> stages,
               const CompileOptions &options) {
  for (Stage stage : stages) {
    std::string pipeline = stagePipeline(stage, options, /*decoder=*/true);
    if (!pipeline.empty() && failed(parsePassPipeline(pipeline, pm)))
      llvm::report_fatal_error("a stage names an unknown pass");
  }
}

} // namespace

void registerPipelines() {
  PassPipelineRegistration<>(
      "llm-import-pipeline",
      "Verify an imported model, raise it to composites and, where it is one, "
      "to a decoder",
      [](OpPassManager &pm) {
        addStages(pm, {Stage::Import, Stage::Raise}, {});
      });
  PassPipelineRegistration<CPUPipelineOptions>(
      "llm-cpu-pipeline",
      "Lower a decoder to programs with CPU kernels and a planned arena",
      [](OpPassManager &pm, const CPUPipelineOptions &chosen) {
        CompileOptions options;
        if (!chosen.mcpus.empty())
          options.mcpus.assign(chosen.mcpus.begin(), chosen.mcpus.end());
        options.pageSize = chosen.pageSize;
        if (!chosen.cacheType.empty())
          options.cacheType = chosen.cacheType;
        addStages(
            pm,
            {Stage::Decode, Stage::Dispatch, Stage::Kernels, Stage::Schedule},
            options);
      });
}

} // namespace llm
