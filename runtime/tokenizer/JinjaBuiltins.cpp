//===- JinjaBuiltins.cpp - filters, tests, methods ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/JinjaInterpreter.h"
#include "runtime/tokenizer/JinjaText.h"

#include <algorithm>
#include <charconv>

namespace llm::runtime::jinja {

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// The text argument at `index`, or `fallback`.
static Expected<Text> textArgument(const CallArguments &arguments, size_t index,
                                   std::string_view name,
                                   const char *fallback) {
  const Value *value = arguments.get(index, name);
  if (!value || value->isNone()) {
    if (!fallback)
      return Status::invalidInput("argument '" + std::string(name) +
                                  "' is missing");
    return Text(fallback);
  }
  if (!value->isString())
    return wrongType("argument '" + std::string(name) + "'", *value);
  return value->asText();
}

static Expected<int64_t> integerArgument(const CallArguments &arguments,
                                         size_t index, std::string_view name,
                                         int64_t fallback) {
  const Value *value = arguments.get(index, name);
  if (!value || value->isNone())
    return fallback;
  if (!value->isInt() && !value->isBool())
    return wrongType("argument '" + std::string(name) + "'", *value);
  return value->asInt();
}

static bool flag(const CallArguments &arguments, size_t index,
                 std::string_view name) {
  const Value *value = arguments.get(index, name);
  return value && value->truthy();
}

/// The set of characters that a strip takes off, or nothing for white space.
static Expected<std::optional<std::string>>
stripSet(const CallArguments &arguments) {
  const Value *value = arguments.get(0, "chars");
  if (!value || value->isNone())
    return std::optional<std::string>();
  if (!value->isString())
    return wrongType("argument 'chars'", *value);
  return std::optional<std::string>(value->asText().str());
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

Expected<Value> Interpreter::memberPath(const Value &object,
                                        const std::string &path) {
  Value value = object;
  for (size_t from = 0; from <= path.size();) {
    size_t end = std::min(path.find('.', from), path.size());
    LLM_ASSIGN_OR_RETURN(value, member(value, path.substr(from, end - from)));
    from = end + 1;
  }
  return value;
}

/// select, reject, selectattr, rejectattr.
Expected<Value> Interpreter::selectItems(const std::string &name,
                                         const Value &value,
                                         const CallArguments &arguments) {
  bool byMember = name.ends_with("attr");
  bool keep = name.starts_with("select");
  size_t next = 0;
  std::string path;
  if (byMember) {
    LLM_ASSIGN_OR_RETURN(Text text,
                         textArgument(arguments, next++, "attribute", nullptr));
    path = text.str();
  }
  std::string testName;
  CallArguments rest;
  if (next < arguments.positional.size()) {
    LLM_ASSIGN_OR_RETURN(Text text,
                         textArgument(arguments, next++, "test", nullptr));
    testName = text.str();
    rest.positional.assign(arguments.positional.begin() +
                               static_cast<std::ptrdiff_t>(next),
                           arguments.positional.end());
  }
  // Jinja takes whatever is false, None too, for an empty list here.
  List items;
  if (value.truthy()) {
    LLM_ASSIGN_OR_RETURN(items, iterate(value));
  }
  List kept;
  for (const Value &item : items) {
    Value subject = item;
    if (byMember) {
      LLM_ASSIGN_OR_RETURN(subject, memberPath(item, path));
    }
    bool holds = subject.truthy();
    if (!testName.empty()) {
      LLM_ASSIGN_OR_RETURN(holds, test(testName, subject, rest));
    }
    if (holds == keep)
      kept.push_back(item);
  }
  return Value::list(std::move(kept));
}

Expected<Value> Interpreter::mapItems(const Value &value,
                                      const CallArguments &arguments) {
  List items;
  if (value.truthy()) { // as in selectItems
    LLM_ASSIGN_OR_RETURN(items, iterate(value));
  }
  List mapped;
  const Value *attribute =
      arguments.positional.empty() ? arguments.get(0, "attribute") : nullptr;
  if (attribute) {
    if (!attribute->isString())
      return wrongType("argument 'attribute'", *attribute);
    const Value *fallback = arguments.get(1, "default");
    for (const Value &item : items) {
      LLM_ASSIGN_OR_RETURN(Value found,
                           memberPath(item, attribute->asText().str()));
      mapped.push_back(found.isUndefined() && fallback ? *fallback : found);
    }
    return Value::list(std::move(mapped));
  }
  LLM_ASSIGN_OR_RETURN(Text name,
                       textArgument(arguments, 0, "filter", nullptr));
  CallArguments rest;
  rest.positional.assign(arguments.positional.begin() + 1,
                         arguments.positional.end());
  rest.named = arguments.named;
  for (const Value &item : items) {
    LLM_ASSIGN_OR_RETURN(Value result, filter(name.str(), item, rest));
    mapped.push_back(std::move(result));
  }
  return Value::list(std::move(mapped));
}

static Expected<Value> lengthOf(const Value &value) {
  auto length = [&]() -> size_t {
    if (value.isString())
      return countCharacters(value.asText().str());
    return value.isList() ? value.asList().size() : value.asDict().size();
  };
  if (value.isUndefined())
    return Value::integer(0);
  if (!value.isString() && !value.isList() && !value.isDict())
    return wrongType("the length", value);
  return Value::integer(static_cast<int64_t>(length()));
}

static Expected<Value> pairsOf(const Value &value) {
  List pairs;
  for (const auto &[name, item] : value.asDict()) {
    LLM_ASSIGN_OR_RETURN(Value pair, Value::list({Value::string(name), item}));
    pairs.push_back(std::move(pair));
  }
  return Value::list(std::move(pairs));
}

static Value toInteger(const Value &value, int64_t fallback) {
  if (value.isNumber() && !value.isFloat())
    return Value::integer(value.asInt());
  if (value.isFloat() && value.asDouble() > -9.2e18 &&
      value.asDouble() < 9.2e18)
    return Value::integer(static_cast<int64_t>(value.asDouble()));
  if (value.isString()) {
    const std::string text =
        strip(value.asText(), std::nullopt, true, true).str();
    int64_t integer = 0;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), integer);
    if (error == std::errc() && end == text.data() + text.size() &&
        !text.empty())
      return Value::integer(integer);
  }
  return Value::integer(fallback);
}

Expected<Value> Interpreter::filter(const std::string &name, const Value &value,
                                    const CallArguments &arguments) {
  LLM_RETURN_IF_ERROR(charge(value.weight()));
  if (name == "default" || name == "d") {
    bool use = value.isUndefined() ||
               (flag(arguments, 1, "boolean") && !value.truthy());
    if (!use)
      return value;
    const Value *fallback = arguments.get(0, "default_value");
    return fallback ? *fallback : Value::string(Text());
  }
  if (name == "length" || name == "count")
    return lengthOf(value);
  if (name == "trim") {
    LLM_ASSIGN_OR_RETURN(std::optional<std::string> set, stripSet(arguments));
    return Value::string(strip(toText(value), set, true, true));
  }
  if (name == "upper" || name == "lower" || name == "capitalize" ||
      name == "title")
    return Value::string(changeCase(toText(value), name));
  if (name == "string" || name == "safe")
    return Value::string(toText(value));
  if (name == "tojson") {
    LLM_ASSIGN_OR_RETURN(int64_t indent,
                         integerArgument(arguments, 1, "indent", -1));
    if (indent > 64)
      return Status::unsupported("tojson with an indent above 64");
    LLM_ASSIGN_OR_RETURN(Text text,
                         toJsonText(value, static_cast<int>(indent)));
    LLM_RETURN_IF_ERROR(charge(text.size()));
    return Value::string(std::move(text));
  }
  if (name == "int") {
    LLM_ASSIGN_OR_RETURN(int64_t fallback,
                         integerArgument(arguments, 0, "default", 0));
    return toInteger(value, fallback);
  }
  if (name == "abs" && value.isNumber())
    return value.asDouble() < 0 ? binary("-", Value::integer(0), value)
                                : Expected<Value>(value);
  if (name == "replace") {
    LLM_ASSIGN_OR_RETURN(Text from, textArgument(arguments, 0, "s", nullptr));
    LLM_ASSIGN_OR_RETURN(Text to, textArgument(arguments, 1, "new", nullptr));
    LLM_ASSIGN_OR_RETURN(int64_t count,
                         integerArgument(arguments, 2, "count", -1));
    return replaceText(toText(value), from, to, count);
  }
  if (name == "items") {
    if (value.isUndefined())
      return Value::list({});
    return value.isDict() ? pairsOf(value) : wrongType("the items", value);
  }
  if (name == "indent") {
    LLM_ASSIGN_OR_RETURN(int64_t width,
                         integerArgument(arguments, 0, "width", 4));
    if (width < 0 || width > 256)
      return Status::unsupported("indent by " + std::to_string(width));
    LLM_RETURN_IF_ERROR(
        charge(value.weight() * static_cast<size_t>(width + 1)));
    return Value::string(indentText(toText(value), static_cast<size_t>(width),
                                    flag(arguments, 1, "first"),
                                    flag(arguments, 2, "blank")));
  }
  if (name == "map")
    return mapItems(value, arguments);
  if (name == "select" || name == "reject" || name == "selectattr" ||
      name == "rejectattr")
    return selectItems(name, value, arguments);

  constexpr std::string_view onItems[] = {"first", "last",    "list",
                                          "join",  "reverse", "unique"};
  if (std::find(std::begin(onItems), std::end(onItems), name) ==
      std::end(onItems))
    return Status::unsupported("filter '" + name + "'");
  LLM_ASSIGN_OR_RETURN(List items, iterate(value));
  if (name == "first" || name == "last") {
    if (items.empty())
      return Value::undefined("the " + name + " item");
    return name == "first" ? items.front() : items.back();
  }
  if (name == "join") {
    LLM_ASSIGN_OR_RETURN(Text between, textArgument(arguments, 0, "d", ""));
    if (const Value *attribute = arguments.get(1, "attribute")) {
      CallArguments by;
      by.named.push_back({"attribute", *attribute});
      LLM_ASSIGN_OR_RETURN(Value mapped, mapItems(value, by));
      items = mapped.asList();
    }
    Text joined;
    for (size_t i = 0; i < items.size(); ++i) {
      LLM_RETURN_IF_ERROR(charge(items[i].weight() + between.size()));
      if (i > 0)
        joined.append(between);
      joined.append(toText(items[i]));
    }
    return Value::string(std::move(joined));
  }
  if (name == "reverse") {
    std::reverse(items.begin(), items.end());
    if (!value.isString())
      return Value::list(std::move(items));
    Text text;
    for (const Value &letter : items)
      text.append(letter.asText());
    return Value::string(std::move(text));
  }
  if (name == "unique") {
    List kept;
    for (const Value &item : items) {
      LLM_RETURN_IF_ERROR(charge(value.weight()));
      if (std::find(kept.begin(), kept.end(), item) == kept.end())
        kept.push_back(item);
    }
    items = std::move(kept);
  }
  return Value::list(std::move(items));
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

Expected<bool> Interpreter::test(const std::string &name, const Value &value,
                                 const CallArguments &arguments) {
  if (name == "defined")
    return !value.isUndefined();
  if (name == "undefined")
    return value.isUndefined();
  if (name == "none")
    return value.isNone();
  if (name == "boolean")
    return value.isBool();
  if (name == "true" || name == "false")
    return value.isBool() && value.asBool() == (name == "true");
  if (name == "integer")
    return value.isInt();
  if (name == "float")
    return value.isFloat();
  if (name == "number")
    return value.isNumber();
  if (name == "string")
    return value.isString();
  if (name == "mapping")
    return value.isDict();
  if (name == "sequence")
    return value.isString() || value.isList() || value.isDict() ||
           value.isUndefined();
  if (name == "iterable")
    return value.isString() || value.isList() || value.isDict() ||
           value.isUndefined();
  if (name == "callable")
    return value.isMacro();
  if (name == "odd" || name == "even") {
    if (!value.isInt())
      return wrongType("'" + name + "'", value);
    return (value.asInt() % 2 != 0) == (name == "odd");
  }
  const Value *other = arguments.get(0, "other");
  if (!other)
    return Status::unsupported("test '" + name + "'");
  if (name == "eq" || name == "equalto" || name == "==" || name == "ne" ||
      name == "!=") {
    LLM_RETURN_IF_ERROR(charge(std::min(value.weight(), other->weight())));
    return (value == *other) == (name != "ne" && name != "!=");
  }
  if (name == "in")
    return contains(*other, value);
  if (name == "lt" || name == "lessthan" || name == "<")
    return less(value, *other);
  if (name == "gt" || name == "greaterthan" || name == ">")
    return less(*other, value);
  if (name == "divisibleby") {
    if (!value.isInt() || !other->isInt() || other->asInt() == 0 ||
        other->asInt() == -1)
      return wrongType("'divisibleby'", value);
    return value.asInt() % other->asInt() == 0;
  }
  return Status::unsupported("test '" + name + "'");
}

//===----------------------------------------------------------------------===//
// Methods and functions
//===----------------------------------------------------------------------===//

Expected<Value> Interpreter::method(const Value &object,
                                    const std::string &name,
                                    const CallArguments &arguments) {
  LLM_RETURN_IF_ERROR(charge(object.weight()));
  if (object.isUndefined())
    return wrongType("a method", object);
  if (object.isDict() || object.isNamespace()) {
    if (const Value *value = object.find(name); value && value->isMacro())
      return callMacro(*value->asMacro(), arguments);
  }
  if (object.isDict()) {
    if (name == "items")
      return pairsOf(object);
    if (name == "keys") {
      LLM_ASSIGN_OR_RETURN(List keys, iterate(object));
      return Value::list(std::move(keys));
    }
    if (name == "values") {
      List values;
      for (const auto &item : object.asDict())
        values.push_back(item.second);
      return Value::list(std::move(values));
    }
    if (name == "get") {
      const Value *key = arguments.get(0, "key");
      const Value *fallback = arguments.get(1, "default");
      const Value *found =
          key && key->isString() ? object.find(key->asText().str()) : nullptr;
      return found ? *found : fallback ? *fallback : Value::none();
    }
  }
  if (object.isString()) {
    const Text &text = object.asText();
    if (name == "strip" || name == "lstrip" || name == "rstrip") {
      LLM_ASSIGN_OR_RETURN(std::optional<std::string> set, stripSet(arguments));
      return Value::string(
          strip(text, set, name != "rstrip", name != "lstrip"));
    }
    if (name == "upper" || name == "lower" || name == "capitalize" ||
        name == "title")
      return Value::string(changeCase(text, name));
    if (name == "startswith" || name == "endswith") {
      const Value *affix = arguments.get(0, "prefix");
      if (!affix)
        return Status::invalidInput("'" + name + "' without an argument");
      LLM_ASSIGN_OR_RETURN(List choices, affix->isString()
                                             ? Expected<List>(List{*affix})
                                             : iterate(*affix));
      return Value::boolean(
          std::any_of(choices.begin(), choices.end(), [&](const Value &one) {
            if (!one.isString())
              return false;
            return name == "startswith"
                       ? text.str().starts_with(one.asText().str())
                       : text.str().ends_with(one.asText().str());
          }));
    }
    if (name == "replace") {
      LLM_ASSIGN_OR_RETURN(Text from,
                           textArgument(arguments, 0, "old", nullptr));
      LLM_ASSIGN_OR_RETURN(Text to, textArgument(arguments, 1, "new", nullptr));
      LLM_ASSIGN_OR_RETURN(int64_t count,
                           integerArgument(arguments, 2, "count", -1));
      return replaceText(text, from, to, count);
    }
    if (name == "split" || name == "rsplit") {
      const Value *separator = arguments.get(0, "sep");
      LLM_ASSIGN_OR_RETURN(int64_t most,
                           integerArgument(arguments, 1, "maxsplit", -1));
      LLM_ASSIGN_OR_RETURN(Text sep, textArgument(arguments, 0, "sep", ""));
      bool bySpace = !separator || separator->isNone();
      if (!bySpace && sep.empty())
        return Status::invalidInput("split by an empty separator");
      LLM_RETURN_IF_ERROR(charge(text.size() * 16));
      return Value::list(splitText(text, bySpace ? "" : sep.str(), most,
                                   /*fromRight=*/name == "rsplit"));
    }
    if (name == "splitlines")
      return Value::list(splitLines(text));
    if (name == "removeprefix" || name == "removesuffix") {
      LLM_ASSIGN_OR_RETURN(Text affix,
                           textArgument(arguments, 0, "prefix", nullptr));
      bool prefix = name == "removeprefix";
      size_t size = text.size(), cut = affix.size();
      if (prefix && text.str().starts_with(affix.str()))
        return Value::string(text.slice(cut, size));
      if (!prefix && text.str().ends_with(affix.str()))
        return Value::string(text.slice(0, size - cut));
      return object;
    }
    if (name == "find" || name == "count") {
      LLM_ASSIGN_OR_RETURN(Text part,
                           textArgument(arguments, 0, "sub", nullptr));
      return Value::integer(name == "find" ? findText(text, part)
                                           : countText(text, part));
    }
    if (name == "join") {
      const Value *items = arguments.get(0, "iterable");
      if (!items)
        return Status::invalidInput("'join' without an argument");
      CallArguments by;
      by.positional.push_back(object);
      return filter("join", *items, by);
    }
    if (name == "isdigit" || name == "isspace")
      return Value::boolean(allOf(text, name == "isdigit"));
  }
  return Status::unsupported("method '" + name + "' of a value of type '" +
                             std::string(object.typeName()) + "'");
}

Expected<Value> Interpreter::function(const std::string &name,
                                      const CallArguments &arguments) {
  if (name == "raise_exception") {
    LLM_ASSIGN_OR_RETURN(Text text, textArgument(arguments, 0, "message", ""));
    return Status::invalidInput("the template refuses: " + text.str());
  }
  if (name == "namespace" || name == "dict") {
    if (!arguments.positional.empty())
      return Status::unsupported("'" + name + "' of a positional argument");
    Dict items;
    for (const auto &[key, value] : arguments.named)
      items.push_back({Text(key), value});
    return name == "dict" ? Value::dict(std::move(items))
                          : Value::makeNamespace(std::move(items));
  }
  if (name == "range") {
    LLM_ASSIGN_OR_RETURN(int64_t first,
                         integerArgument(arguments, 0, "start", 0));
    int64_t last = first, step = 1;
    if (arguments.positional.size() > 1) {
      LLM_ASSIGN_OR_RETURN(last, integerArgument(arguments, 1, "stop", 0));
      LLM_ASSIGN_OR_RETURN(step, integerArgument(arguments, 2, "step", 1));
    } else {
      first = 0;
    }
    if (step == 0)
      return Status::invalidInput("range with step 0");
    List items;
    for (int64_t i = first; step > 0 ? i < last : i > last;) {
      // Jinja's sandbox stops at 100,000 as well.
      if (items.size() >= 100'000)
        return Status::unsupported("a range of more than 100000 numbers");
      items.push_back(Value::integer(i));
      if (__builtin_add_overflow(i, step, &i))
        break;
    }
    LLM_RETURN_IF_ERROR(charge(items.size() * 16));
    return Value::list(std::move(items));
  }
  return Status::invalidInput("'" + name + "' is undefined");
}

} // namespace llm::runtime::jinja
