//===- Tokenizer.h - Finding and sealing a model's tokenizer ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_TOKENIZER_H
#define LLM_LIB_PIPELINE_TOKENIZER_H

#include "lib/Artifact/Artifact.h"

namespace llm {

/// Reads the tokenizer at `tokenizer`, or the one beside or above the model
/// where that is empty, and puts its sealed form and the model's generation
/// defaults into `inputs`. A model without one is fine, a broken one is an
/// error, one with ids that the model does not have is warned of.
mlir::LogicalResult sealTokenizer(mlir::ModuleOp module,
                                  llvm::StringRef modelPath,
                                  llvm::StringRef tokenizer,
                                  ArtifactInputs &inputs);

} // namespace llm

#endif // LLM_LIB_PIPELINE_TOKENIZER_H
