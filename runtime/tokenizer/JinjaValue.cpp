//===- JinjaValue.cpp - values of chat templates --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/JinjaValue.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace llm::runtime::jinja {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

Text::Text(std::string text, bool trusted) : bytes(std::move(text)) {
  if (!trusted)
    mark({0, bytes.size()});
}

void Text::mark(ByteRange range) {
  if (range.begin >= range.end)
    return;
  if (!outside.empty() && outside.back().end == range.begin)
    outside.back().end = range.end;
  else
    outside.push_back(range);
}

void Text::append(const Text &other) {
  size_t offset = bytes.size();
  bytes += other.bytes;
  for (ByteRange range : other.outside)
    mark({range.begin + offset, range.end + offset});
}

Text Text::slice(size_t begin, size_t end) const {
  Text part;
  part.bytes = bytes.substr(begin, end - begin);
  for (ByteRange range : outside) {
    size_t from = std::max(range.begin, begin), to = std::min(range.end, end);
    if (from < to)
      part.mark({from - begin, to - begin});
  }
  return part;
}

//===----------------------------------------------------------------------===//
// Value
//===----------------------------------------------------------------------===//

Value::Measure Value::measure() const {
  if (isList())
    return std::get<ListPointer>(storage)->measure;
  if (isDict())
    return std::get<DictPointer>(storage)->measure;
  return {0, isString() ? asText().size() + 1 : 1};
}

Status Value::include(Measure &outer, const Value &item) {
  if (item.isNamespace())
    return Status::unsupported("a namespace inside another value");
  Measure inner = item.measure();
  outer.depth = std::max(outer.depth, inner.depth + 1);
  outer.weight += inner.weight;
  if (outer.depth > maxValueDepth)
    return Status::unsupported("values nested deeper than " +
                               std::to_string(maxValueDepth) + " levels");
  if (outer.weight > maxValueWeight)
    return Status::resource("a value of more than " +
                            std::to_string(maxValueWeight >> 20) + " MiB");
  return Status::success();
}

Expected<Value> Value::list(List items) {
  Measure measure{1, 1};
  for (const Value &item : items)
    LLM_RETURN_IF_ERROR(include(measure, item));
  return Value(Storage(std::make_shared<const Nested<List>>(
      Nested<List>{std::move(items), measure})));
}

Expected<Value> Value::dict(Dict items) {
  Measure measure{1, 1};
  for (const auto &[name, value] : items) {
    measure.weight += name.size();
    LLM_RETURN_IF_ERROR(include(measure, value));
  }
  return Value(Storage(std::make_shared<const Nested<Dict>>(
      Nested<Dict>{std::move(items), measure})));
}

Expected<Value> Value::makeNamespace(Dict items) {
  Measure measure;
  for (const auto &item : items)
    LLM_RETURN_IF_ERROR(include(measure, item.second));
  return Value(Storage(std::make_shared<Dict>(std::move(items))));
}

const Value *Value::find(std::string_view key) const {
  if (!isDict() && !isNamespace())
    return nullptr;
  for (const auto &[name, value] : isDict() ? asDict() : asNamespace())
    if (name.str() == key)
      return &value;
  return nullptr;
}

bool Value::truthy() const {
  if (isUndefined() || isNone())
    return false;
  if (isBool())
    return asBool();
  if (isNumber())
    return asDouble() != 0;
  if (isString())
    return !asText().empty();
  if (isList())
    return !asList().empty();
  if (isDict())
    return !asDict().empty();
  return true;
}

std::string_view Value::typeName() const {
  constexpr std::string_view names[] = {"undefined", "NoneType", "bool", "int",
                                        "float",     "str",      "list", "dict",
                                        "namespace", "macro"};
  static_assert(std::size(names) == std::variant_size_v<Storage>);
  return names[storage.index()];
}

bool operator==(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.isFloat() || b.isFloat() ? a.asDouble() == b.asDouble()
                                      : a.asInt() == b.asInt();
  if (a.storage.index() != b.storage.index())
    return false;
  if (a.isString())
    return a.asText().str() == b.asText().str();
  if (a.isList())
    return a.asList() == b.asList();
  if (a.isDict()) {
    const Dict &left = a.asDict();
    if (left.size() != b.asDict().size())
      return false;
    return std::all_of(left.begin(), left.end(), [&](const auto &item) {
      const Value *other = b.find(item.first.str());
      return other && item.second == *other;
    });
  }
  if (a.isNamespace())
    return &a.asNamespace() == &b.asNamespace();
  if (a.isMacro())
    return a.asMacro() == b.asMacro();
  return true; // both undefined, or both None
}

//===----------------------------------------------------------------------===//
// Spelling
//===----------------------------------------------------------------------===//

/// As Python's repr(float).
static std::string spellDouble(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[64];
  double magnitude = std::fabs(value);
  bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  auto result = std::to_chars(buffer, buffer + sizeof(buffer), value,
                              scientific ? std::chars_format::scientific
                                         : std::chars_format::fixed);
  std::string text(buffer, result.ptr);
  if (!scientific && text.find('.') == std::string::npos)
    text += ".0";
  return text;
}

/// As Python's repr(str), without escapes beyond ASCII.
static Text reprString(const Text &text) {
  const std::string &bytes = text.str();
  char quote = bytes.find('\'') != std::string::npos &&
                       bytes.find('"') == std::string::npos
                   ? '"'
                   : '\'';
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out(1, quote);
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      ((out += "\\x") += digits[byte >> 4]) += digits[byte & 15];
    else
      out += c;
  }
  return text.derive(out += quote);
}

Text toRepr(const Value &value) {
  if (value.isString())
    return reprString(value.asText());
  if (value.isList()) {
    Text out("[");
    for (const Value &item : value.asList()) {
      if (out.size() > 1)
        out.append(Text(", "));
      out.append(toRepr(item));
    }
    out.append(Text("]"));
    return out;
  }
  if (value.isDict()) {
    Text out("{");
    for (const auto &[name, item] : value.asDict()) {
      if (out.size() > 1)
        out.append(Text(", "));
      out.append(reprString(name));
      out.append(Text(": "));
      out.append(toRepr(item));
    }
    out.append(Text("}"));
    return out;
  }
  return toText(value);
}

Text toText(const Value &value) {
  if (value.isString())
    return value.asText();
  if (value.isNone())
    return Text("None");
  if (value.isBool())
    return Text(value.asBool() ? "True" : "False");
  if (value.isInt())
    return Text(std::to_string(value.asInt()));
  if (value.isFloat())
    return Text(spellDouble(value.asDouble()));
  if (value.isList() || value.isDict())
    return toRepr(value);
  return Text();
}

/// A JSON string, with json.dumps's escapes.
static Text jsonString(const Text &text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text.str()) {
    auto byte = static_cast<unsigned char>(c);
    switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    default:
      if (byte < 0x20)
        ((out += "\\u00") += digits[byte >> 4]) += digits[byte & 15];
      else
        out += c;
    }
  }
  return text.derive(out += '"');
}

static Status writeJson(const Value &value, int indent, int level, Text &out) {
  auto newLine = [&](int depth) {
    if (indent >= 0)
      out.append(Text("\n" + std::string(static_cast<size_t>(indent) *
                                             static_cast<size_t>(depth),
                                         ' ')));
  };
  auto separate = [&](bool first) {
    if (!first)
      out.append(Text(indent >= 0 ? "," : ", "));
    newLine(level + 1);
  };
  if (value.isString()) {
    out.append(jsonString(value.asText()));
  } else if (value.isNone()) {
    out.append(Text("null"));
  } else if (value.isBool()) {
    out.append(Text(value.asBool() ? "true" : "false"));
  } else if (value.isInt() || value.isFloat()) {
    out.append(toText(value));
  } else if (value.isList()) {
    out.append(Text("["));
    bool first = true;
    for (const Value &item : value.asList()) {
      separate(std::exchange(first, false));
      LLM_RETURN_IF_ERROR(writeJson(item, indent, level + 1, out));
    }
    if (!first)
      newLine(level);
    out.append(Text("]"));
  } else if (value.isDict()) {
    out.append(Text("{"));
    bool first = true;
    for (const auto &[name, item] : value.asDict()) {
      separate(std::exchange(first, false));
      out.append(jsonString(name));
      out.append(Text(": "));
      LLM_RETURN_IF_ERROR(writeJson(item, indent, level + 1, out));
    }
    if (!first)
      newLine(level);
    out.append(Text("}"));
  } else {
    return Status::invalidInput("tojson of a value of type '" +
                                std::string(value.typeName()) + "'");
  }
  return Status::success();
}

Expected<Text> toJsonText(const Value &value, int indent) {
  Text out;
  LLM_RETURN_IF_ERROR(writeJson(value, indent, 0, out));
  return out;
}

} // namespace llm::runtime::jinja
