//===- CalibrationText.h - The tokens that calibration runs -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_CALIBRATIONTEXT_H
#define LLM_PASSES_COMPRESS_CALIBRATIONTEXT_H

#include "lib/Execution/ModuleRunner.h"

namespace mlir::llm {

/// On the module: the text, token file and tokenizer (DictionaryAttr of
/// StrAttr text, tokens, tokenizer) of passes whose options name none.
inline constexpr StringRef kCalibrationAttr = "llm.calibration";

struct CalibrationOptions {
  std::string text;      ///< a text in UTF-8
  std::string tokens;    ///< or ids, one sequence per line
  std::string tokenizer; ///< of the text; empty: the model's
  int64_t samples = 128;
  int64_t context = 512; ///< tokens of a sample at most
};

/// The sequences, each of at least one token.
using Samples = std::vector<std::vector<int32_t>>;

/// Disjoint windows of the text, each led by the id that the tokenizer puts in
/// front, or the lines of the token file, cut to windows. Where there are more
/// than `samples`, as many that lie evenly; where there are fewer, a warning. A
/// window that the text ends in counts only where it is the only one. Reports
/// through the module a file that cannot be read or holds no token.
FailureOr<Samples> readSamples(ModuleOp module,
                               const ::llm::ModuleRunner &runner,
                               CalibrationOptions options);

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_CALIBRATIONTEXT_H
