//===- JinjaValue.h - values of chat templates -----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The values of chat templates. Strings remember which of their bytes came
// from outside, so that what a user wrote never counts as markup.

#ifndef LLM_RUNTIME_TOKENIZER_JINJAVALUE_H
#define LLM_RUNTIME_TOKENIZER_JINJAVALUE_H

#include "runtime/core/Status.h"
#include "runtime/tokenizer/Regex.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace llm::runtime::jinja {

/// Text with the ranges of it that came from outside.
class Text {
public:
  Text() = default;
  Text(std::string text, bool trusted = true);

  const std::string &str() const { return bytes; }
  size_t size() const { return bytes.size(); }
  bool empty() const { return bytes.empty(); }
  bool trusted() const { return outside.empty(); }
  const std::vector<ByteRange> &untrusted() const { return outside; }

  void append(const Text &other);
  /// Bytes [begin, end), with what is known of them.
  Text slice(size_t begin, size_t end) const;
  /// A text made from this one in a way that loses positions: untrusted as a
  /// whole if any of it is.
  Text derive(std::string text) const { return {std::move(text), trusted()}; }

private:
  void mark(ByteRange range);
  std::string bytes;
  std::vector<ByteRange> outside; // ascending, disjoint
};

struct Macro;
class Value;
using List = std::vector<Value>;
/// In order of insertion.
using Dict = std::vector<std::pair<Text, Value>>;

/// Deeper nesting of lists and dicts is refused, and more weight: shared
/// parts, which cost nothing to hold, count each time they would be printed.
inline constexpr int maxValueDepth = 64;
inline constexpr size_t maxValueWeight = size_t{64} << 20;

class Value {
public:
  struct Undefined {
    std::string name; // of the variable or member that is not there
  };
  struct None {};

  Value() : storage(Undefined{}) {}
  static Value undefined(std::string name) {
    return Value(Storage(Undefined{std::move(name)}));
  }
  static Value none() { return Value(Storage(None{})); }
  static Value boolean(bool value) { return Value(Storage(value)); }
  static Value integer(int64_t value) { return Value(Storage(value)); }
  static Value number(double value) { return Value(Storage(value)); }
  static Value string(Text text) {
    return Value(Storage(std::make_shared<const Text>(std::move(text))));
  }
  static Value macro(const Macro *macro) { return Value(Storage(macro)); }
  /// A list or a dict: a failure where it nests too deeply, is too heavy, or
  /// holds a namespace (which could then contain itself).
  static Expected<Value> list(List items);
  static Expected<Value> dict(Dict items);
  /// namespace(): the one value that can change.
  static Expected<Value> makeNamespace(Dict items);

  bool isUndefined() const { return holds<Undefined>(); }
  bool isNone() const { return holds<None>(); }
  bool isBool() const { return holds<bool>(); }
  bool isInt() const { return holds<int64_t>(); }
  bool isFloat() const { return holds<double>(); }
  bool isNumber() const { return isInt() || isFloat() || isBool(); }
  bool isString() const { return holds<TextPointer>(); }
  bool isList() const { return holds<ListPointer>(); }
  bool isDict() const { return holds<DictPointer>(); }
  bool isNamespace() const { return holds<NamespacePointer>(); }
  bool isMacro() const { return holds<const Macro *>(); }

  /// The content of a value of that kind.
  const std::string &undefinedName() const {
    return std::get<Undefined>(storage).name;
  }
  bool asBool() const { return std::get<bool>(storage); }
  int64_t asInt() const {
    return isBool() ? asBool() : std::get<int64_t>(storage);
  }
  double asDouble() const {
    return isFloat() ? std::get<double>(storage) : static_cast<double>(asInt());
  }
  const Text &asText() const { return *std::get<TextPointer>(storage); }
  const List &asList() const { return std::get<ListPointer>(storage)->items; }
  const Dict &asDict() const { return std::get<DictPointer>(storage)->items; }
  Dict &asNamespace() const { return *std::get<NamespacePointer>(storage); }
  const Macro *asMacro() const { return std::get<const Macro *>(storage); }

  /// The value of `key` in a dict or namespace, or null.
  const Value *find(std::string_view key) const;

  /// About the bytes of its printed form.
  size_t weight() const { return measure().weight; }
  /// Python's truth value.
  bool truthy() const;
  /// Python's name for the type, for messages.
  std::string_view typeName() const;

  friend bool operator==(const Value &a, const Value &b);

private:
  struct Measure {
    int depth = 0;
    size_t weight = 1; // about the bytes of its printed form
  };
  template <typename Items> struct Nested {
    Items items;
    Measure measure;
  };
  using TextPointer = std::shared_ptr<const Text>;
  using ListPointer = std::shared_ptr<const Nested<List>>;
  using DictPointer = std::shared_ptr<const Nested<Dict>>;
  using NamespacePointer = std::shared_ptr<Dict>;
  using Storage =
      std::variant<Undefined, None, bool, int64_t, double, TextPointer,
                   ListPointer, DictPointer, NamespacePointer, const Macro *>;
  explicit Value(Storage storage) : storage(std::move(storage)) {}
  template <typename T> bool holds() const {
    return std::holds_alternative<T>(storage);
  }
  Measure measure() const;
  static Status include(Measure &outer, const Value &item);

  Storage storage;
};

/// As Python's str(): what a template prints. An undefined value prints
/// nothing.
Text toText(const Value &value);
/// As Python's repr().
Text toRepr(const Value &value);
/// As Python's json.dumps without escapes beyond ASCII; `indent` < 0 for one
/// line. Unsupported for what JSON cannot hold.
Expected<Text> toJsonText(const Value &value, int indent);

} // namespace llm::runtime::jinja

#endif // LLM_RUNTIME_TOKENIZER_JINJAVALUE_H
