//===- QuantizationMethod.cpp - The methods by name -----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/QuantizationMethod.h"

namespace mlir::llm {

static constexpr QuantizationMethod kMethods[] = {
    {"gptq", /*needsGram=*/true, quantizeGPTQ},
    {"rtn", /*needsGram=*/false, quantizeRoundToNearest},
};

llvm::ArrayRef<QuantizationMethod> quantizationMethods() { return kMethods; }

} // namespace mlir::llm
