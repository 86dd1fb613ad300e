//===- Json.cpp - bounded JSON --------------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Json.h"

#include <limits>

namespace llm::runtime::json {

/// True if brackets outside strings nest deeper than maxDepth. Looking before
/// parsing keeps recursion out of whatever the library does with the value.
static bool tooDeep(std::string_view text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > maxDepth)
        return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

Expected<Json> parse(std::string_view text) {
  if (tooDeep(text))
    return Status::unsupported("JSON nested deeper than " +
                               std::to_string(maxDepth) + " levels");
  try {
    return Json::parse(text);
  } catch (const Json::parse_error &error) {
    return Status::invalidInput("not JSON at byte " +
                                std::to_string(error.byte));
  } catch (const Json::exception &error) {
    // A number out of range.
    return Status::invalidInput(std::string("not usable JSON: ") +
                                error.what());
  }
}

const Json *find(const Json &object, std::string_view key) {
  if (!object.is_object())
    return nullptr;
  auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

Expected<std::string> getString(const Json &object, std::string_view key,
                                std::string_view fallback) {
  const Json *value = find(object, key);
  if (!value || value->is_null())
    return std::string(fallback);
  if (!value->is_string())
    return Status::invalidInput("'" + std::string(key) + "' is not a string");
  return value->get<std::string>();
}

Expected<bool> getBool(const Json &object, std::string_view key,
                       bool fallback) {
  const Json *value = find(object, key);
  if (!value || value->is_null())
    return fallback;
  if (!value->is_boolean())
    return Status::invalidInput("'" + std::string(key) +
                                "' is neither true nor false");
  return value->get<bool>();
}

Expected<std::string> requireString(const Json &object, std::string_view key) {
  const Json *value = find(object, key);
  if (!value || !value->is_string())
    return Status::invalidInput("'" + std::string(key) +
                                "' is missing or not "
                                "a string");
  return value->get<std::string>();
}

std::optional<int32_t> asTokenId(const Json &value) {
  if (!value.is_number_integer())
    return std::nullopt;
  // Large positive numbers are held unsigned, negative ones signed.
  if (value.is_number_unsigned()) {
    uint64_t id = value.get<uint64_t>();
    if (id > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
      return std::nullopt;
    return static_cast<int32_t>(id);
  }
  int64_t id = value.get<int64_t>();
  if (id < 0 || id > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return static_cast<int32_t>(id);
}

Expected<std::string> componentType(const Json &component) {
  if (!component.is_object())
    return Status::invalidInput("a component is not an object");
  return requireString(component, "type");
}

} // namespace llm::runtime::json
