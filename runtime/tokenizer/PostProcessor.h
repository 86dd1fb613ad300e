//===- PostProcessor.h - ids around a text ---------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The post-processors of tokenizer.json: ids put around those of the text.

#ifndef LLM_RUNTIME_TOKENIZER_POSTPROCESSOR_H
#define LLM_RUNTIME_TOKENIZER_POSTPROCESSOR_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace llm::runtime {

/// What TemplateProcessing, BertProcessing and RobertaProcessing (or a Sequence
/// of them and ByteLevel, which moves offsets only) do to a single text.
struct PostProcessor {
  std::vector<int32_t> prefix, suffix;

  /// Reads the member "post_processor" (null does nothing). Unsupported, with
  /// its name, for any other component.
  static Expected<PostProcessor> parse(const nlohmann::json &component);
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_POSTPROCESSOR_H
