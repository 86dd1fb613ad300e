//===- JinjaInterpreter.h - running chat templates -------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Running a parsed chat template.

#ifndef LLM_RUNTIME_TOKENIZER_JINJAINTERPRETER_H
#define LLM_RUNTIME_TOKENIZER_JINJAINTERPRETER_H

#include "runtime/tokenizer/JinjaSyntax.h"
#include "runtime/tokenizer/JinjaValue.h"

namespace llm::runtime::jinja {

/// What one rendering may cost, counted in bytes touched, so that a hostile
/// template ends in an error and not in a hang. A statement or an expression
/// counts as `nodeWork`, a turn of a loop as `turnWork`.
inline constexpr size_t maxWork = size_t{128} << 20;
inline constexpr size_t nodeWork = 16;
inline constexpr size_t turnWork = 128;
/// Levels of evaluation, macros included.
inline constexpr int maxEvaluationDepth = 300;

/// The values of a call, filter or test.
struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument at `index` or with `name`; null if it is not given.
  const Value *get(size_t index, std::string_view name) const;
};

class Interpreter {
public:
  explicit Interpreter(Dict globals);

  /// What the template prints.
  Expected<Text> run(const Body &body);

  /// Counts work; Resource when it is too much.
  Status charge(size_t amount);

  // JinjaBuiltins.cpp
  Expected<Value> filter(const std::string &name, const Value &value,
                         const CallArguments &arguments);
  Expected<bool> test(const std::string &name, const Value &value,
                      const CallArguments &arguments);
  Expected<Value> method(const Value &object, const std::string &name,
                         const CallArguments &arguments);
  Expected<Value> function(const std::string &name,
                           const CallArguments &arguments);

  /// The items that a loop over `value` visits: of a list, the keys of a dict,
  /// the characters of a string.
  Expected<List> iterate(const Value &value);
  Expected<Value> member(const Value &object, const std::string &name);
  Expected<bool> contains(const Value &container, const Value &item);
  /// a < b, for numbers and strings.
  Expected<bool> less(const Value &a, const Value &b);

private:
  enum class Flow { Normal, Break, Continue };
  using Scope = std::vector<std::pair<std::string, Value>>;

  Expected<Flow> execute(const Body &body);
  Expected<Flow> execute(const Stmt &stmt);
  Expected<Flow> forLoop(const Stmt &stmt);
  Status assign(const std::vector<std::string> &targets, const Value &value);
  Status assignMember(const Stmt &stmt, Value value);
  Status print(const Value &value);
  Expected<Text> capture(const Body &body);

  Expected<Value> evaluate(const Expr &expr);
  Expected<Value> evaluateInner(const Expr &expr);
  Expected<Value> dictOf(const Expr &expr);
  Expected<Value> item(const Value &object, const Value &key);
  Expected<Value> slice(const Expr &expr);
  Expected<Value> compare(const Expr &expr);
  Expected<Value> call(const Expr &expr);
  Expected<Value> callMacro(const Macro &macro, const CallArguments &arguments);
  Expected<CallArguments> evaluate(const Arguments &arguments);
  Expected<Value> binary(const std::string &op, const Value &a, const Value &b);
  Value lookup(const std::string &name) const;

  Expected<Value> selectItems(const std::string &name, const Value &value,
                              const CallArguments &arguments);
  Expected<Value> mapItems(const Value &value, const CallArguments &arguments);
  Expected<Value> memberPath(const Value &object, const std::string &path);

  std::vector<Scope> scopes;
  /// The scopes of the running macro start here; scopes[0] is global.
  size_t base = 0;
  Text *out = nullptr;
  size_t work = 0;
  int depth = 0;
};

/// Characters of a string as values.
Expected<List> characters(const Text &text);
/// "…: cannot …" for a value of the wrong type.
Status wrongType(std::string_view what, const Value &value);

} // namespace llm::runtime::jinja

#endif // LLM_RUNTIME_TOKENIZER_JINJAINTERPRETER_H
