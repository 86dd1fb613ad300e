//===- Json.h - bounded JSON -----------------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Reading JSON from outside: bounded, and with failures that name the place.

#ifndef LLM_RUNTIME_TOKENIZER_JSON_H
#define LLM_RUNTIME_TOKENIZER_JSON_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace llm::runtime::json {

using Json = nlohmann::json;

/// Deeper nesting is refused, so that walks over a document may recurse.
inline constexpr int maxDepth = 64;

/// Parses a whole document. InvalidInput with the byte offset where it is not
/// JSON; Unsupported where it nests deeper than maxDepth.
Expected<Json> parse(std::string_view text);

/// The member `key` of `object`, or null where `object` has none (or is no
/// object).
const Json *find(const Json &object, std::string_view key);

/// The member `key` as text, flag or number. Without the member or with a null
/// the `fallback`; InvalidInput naming the member where its type is another.
Expected<std::string> getString(const Json &object, std::string_view key,
                                std::string_view fallback);
Expected<bool> getBool(const Json &object, std::string_view key, bool fallback);

/// The member `key`, which must be there.
Expected<std::string> requireString(const Json &object, std::string_view key);

/// A token id: an integer in [0, 2^31).
std::optional<int32_t> asTokenId(const Json &value);

/// The member "type" of a component, or InvalidInput.
Expected<std::string> componentType(const Json &component);

} // namespace llm::runtime::json

#endif // LLM_RUNTIME_TOKENIZER_JSON_H
