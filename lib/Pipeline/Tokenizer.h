//===- Tokenizer.h - Finding and sealing a model's tokenizer ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_TOKENIZER_H
#define LLM_LIB_PIPELINE_TOKENIZER_H

#include "lib/Artifact/Artifact.h"
#include "lib/Execution/ModuleRunner.h"

namespace llm {

/// Reads the tokenizer at `tokenizer`, or the one beside or above the model
/// where that is empty, and puts its sealed form and the model's generation
/// defaults into `inputs`. A model without one is fine, a broken one is an
/// error, one with ids that the model does not have is warned of.
mlir::LogicalResult sealTokenizer(mlir::ModuleOp module,
                                  llvm::StringRef modelPath,
                                  llvm::StringRef tokenizer,
                                  ArtifactInputs &inputs);

/// The ids of `text` by the same tokenizer; special tokens that it spells stay
/// text. A model without one is an error here.
mlir::FailureOr<EncodedText> encodeText(mlir::ModuleOp module,
                                        llvm::StringRef modelPath,
                                        llvm::StringRef tokenizer,
                                        llvm::StringRef text);

} // namespace llm

#endif // LLM_LIB_PIPELINE_TOKENIZER_H
