//===- JinjaInterpreter.cpp - running chat templates ----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/JinjaInterpreter.h"

#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llm::runtime::jinja {

const Value *CallArguments::get(size_t index, std::string_view name) const {
  if (index < positional.size())
    return &positional[index];
  for (const auto &[key, value] : named)
    if (key == name)
      return &value;
  return nullptr;
}

Status wrongType(std::string_view what, const Value &value) {
  if (value.isUndefined())
    return Status::invalidInput("'" + value.undefinedName() + "' is undefined");
  return Status::invalidInput(std::string(what) + " of a value of type '" +
                              std::string(value.typeName()) + "'");
}

Expected<List> characters(const Text &text) {
  List items;
  for (size_t i = 0; i < text.size();) {
    size_t length = unicode::decodeAt(text.str(), i).length;
    items.push_back(Value::string(text.slice(i, i + length)));
    i += length;
  }
  return items;
}

Interpreter::Interpreter(Dict globals) {
  Scope scope;
  for (auto &[name, value] : globals)
    scope.push_back({name.str(), std::move(value)});
  scopes.push_back(std::move(scope));
}

Expected<Text> Interpreter::run(const Body &body) { return capture(body); }

Status Interpreter::charge(size_t amount) {
  if (amount > maxWork - work)
    return Status::resource("the template takes too long or prints too much");
  work += amount;
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

Status Interpreter::print(const Value &value) {
  LLM_RETURN_IF_ERROR(charge(value.weight()));
  out->append(toText(value));
  return Status::success();
}

Expected<Text> Interpreter::capture(const Body &body) {
  Text captured;
  Text *outer = std::exchange(out, &captured);
  Expected<Flow> flow = execute(body);
  out = outer;
  if (!flow)
    return flow.takeStatus();
  return captured;
}

Expected<Interpreter::Flow> Interpreter::execute(const Body &body) {
  for (const auto &stmt : body) {
    LLM_RETURN_IF_ERROR(charge(nodeWork));
    if (depth >= maxEvaluationDepth)
      return Status::unsupported("line " + std::to_string(stmt->line) +
                                 ": nested too deeply");
    ++depth;
    Expected<Flow> flow = execute(*stmt);
    --depth;
    if (!flow || *flow != Flow::Normal)
      return flow;
  }
  return Flow::Normal;
}

Expected<Interpreter::Flow> Interpreter::execute(const Stmt &stmt) {
  switch (stmt.kind) {
  case Stmt::Data:
    LLM_RETURN_IF_ERROR(charge(stmt.text.size()));
    out->append(Text(stmt.text));
    return Flow::Normal;
  case Stmt::Print: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*stmt.expr));
    LLM_RETURN_IF_ERROR(print(value));
    return Flow::Normal;
  }
  case Stmt::If: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*stmt.expr));
    return execute(value.truthy() ? stmt.body : stmt.otherwise);
  }
  case Stmt::For:
    return forLoop(stmt);
  case Stmt::Set: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*stmt.expr));
    LLM_RETURN_IF_ERROR(assign(stmt.targets, value));
    return Flow::Normal;
  }
  case Stmt::SetItem: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*stmt.expr));
    LLM_RETURN_IF_ERROR(assignMember(stmt, std::move(value)));
    return Flow::Normal;
  }
  case Stmt::SetBlock: {
    LLM_ASSIGN_OR_RETURN(Text text, capture(stmt.body));
    LLM_RETURN_IF_ERROR(assign(stmt.targets, Value::string(std::move(text))));
    return Flow::Normal;
  }
  case Stmt::Define:
    LLM_RETURN_IF_ERROR(assign({stmt.macro.name}, Value::macro(&stmt.macro)));
    return Flow::Normal;
  case Stmt::Break:
    return Flow::Break;
  case Stmt::Continue:
    return Flow::Continue;
  case Stmt::Block:
    return execute(stmt.body);
  }
  return Status::internal("unknown statement");
}

/// Sets variables in the innermost scope.
Status Interpreter::assign(const std::vector<std::string> &targets,
                           const Value &value) {
  auto set = [&](const std::string &name, const Value &to) {
    for (auto &[key, old] : scopes.back()) {
      if (key == name) {
        old = to;
        return;
      }
    }
    scopes.back().push_back({name, to});
  };
  if (targets.size() == 1) {
    set(targets[0], value);
    return Status::success();
  }
  LLM_ASSIGN_OR_RETURN(List items, iterate(value));
  if (items.size() != targets.size())
    return Status::invalidInput("cannot take " + std::to_string(items.size()) +
                                " values apart into " +
                                std::to_string(targets.size()));
  for (size_t i = 0; i < items.size(); ++i)
    set(targets[i], items[i]);
  return Status::success();
}

Status Interpreter::assignMember(const Stmt &stmt, Value value) {
  Value object = lookup(stmt.targets[0]);
  std::string where = "line " + std::to_string(stmt.line) + ": ";
  if (!object.isNamespace())
    return Status::invalidInput(where + "'" + stmt.targets[0] +
                                "' is not a namespace");
  // A container checks what it holds; this is one.
  LLM_RETURN_IF_ERROR(Value::list({value}).withContext(where + stmt.member));
  for (auto &[name, old] : object.asNamespace()) {
    if (name.str() == stmt.member) {
      old = std::move(value);
      return Status::success();
    }
  }
  object.asNamespace().push_back({Text(stmt.member), std::move(value)});
  return Status::success();
}

/// The variable `loop`.
static Expected<Value> loopValue(const List &items, size_t index) {
  auto integer = [](size_t value) {
    return Value::integer(static_cast<int64_t>(value));
  };
  size_t count = items.size();
  Dict loop = {
      {Text("index"), integer(index + 1)},
      {Text("index0"), integer(index)},
      {Text("first"), Value::boolean(index == 0)},
      {Text("last"), Value::boolean(index + 1 == count)},
      {Text("length"), integer(count)},
      {Text("revindex"), integer(count - index)},
      {Text("revindex0"), integer(count - index - 1)},
  };
  if (index > 0)
    loop.push_back({Text("previtem"), items[index - 1]});
  if (index + 1 < count)
    loop.push_back({Text("nextitem"), items[index + 1]});
  return Value::dict(std::move(loop));
}

Expected<Interpreter::Flow> Interpreter::forLoop(const Stmt &stmt) {
  LLM_ASSIGN_OR_RETURN(Value iterable, evaluate(*stmt.expr));
  Expected<List> visited = iterate(iterable);
  if (!visited)
    return visited.takeStatus().withContext("line " +
                                            std::to_string(stmt.line));
  List items = *std::move(visited);
  // On failure the whole rendering ends, so scopes need no unwinding.
  if (stmt.filter) {
    List kept;
    for (Value &item : items) {
      scopes.emplace_back();
      LLM_RETURN_IF_ERROR(assign(stmt.targets, item));
      LLM_ASSIGN_OR_RETURN(Value keep, evaluate(*stmt.filter));
      scopes.pop_back();
      if (keep.truthy())
        kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  if (items.empty())
    return execute(stmt.otherwise);
  for (size_t i = 0; i < items.size(); ++i) {
    LLM_RETURN_IF_ERROR(charge(turnWork));
    scopes.emplace_back();
    LLM_ASSIGN_OR_RETURN(Value loop, loopValue(items, i));
    LLM_RETURN_IF_ERROR(assign({"loop"}, loop));
    LLM_RETURN_IF_ERROR(assign(stmt.targets, items[i]));
    LLM_ASSIGN_OR_RETURN(Flow flow, execute(stmt.body));
    scopes.pop_back();
    if (flow == Flow::Break)
      break;
  }
  return Flow::Normal;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

Value Interpreter::lookup(const std::string &name) const {
  auto findIn = [&](const Scope &scope) -> const Value * {
    for (const auto &[key, value] : scope)
      if (key == name)
        return &value;
    return nullptr;
  };
  for (size_t i = scopes.size(); i > base; --i)
    if (const Value *value = findIn(scopes[i - 1]))
      return *value;
  if (const Value *value = findIn(scopes[0]))
    return *value;
  return Value::undefined(name);
}

Expected<Value> Interpreter::evaluate(const Expr &expr) {
  LLM_RETURN_IF_ERROR(charge(nodeWork));
  if (depth >= maxEvaluationDepth)
    return Status::unsupported("line " + std::to_string(expr.line) +
                               ": nested too deeply");
  ++depth;
  Expected<Value> value = evaluateInner(expr);
  --depth;
  // The innermost expression says where.
  if (!value && !value.status().message().starts_with("line "))
    return value.takeStatus().withContext("line " + std::to_string(expr.line));
  return value;
}

Expected<Value> Interpreter::evaluateInner(const Expr &expr) {
  switch (expr.kind) {
  case Expr::Constant:
    return expr.value;
  case Expr::Variable:
    return lookup(expr.name);
  case Expr::ListOf: {
    List items;
    for (const ExprPtr &operand : expr.operands) {
      LLM_ASSIGN_OR_RETURN(Value item, evaluate(*operand));
      items.push_back(std::move(item));
    }
    return Value::list(std::move(items));
  }
  case Expr::DictOf:
    return dictOf(expr);
  case Expr::Member: {
    LLM_ASSIGN_OR_RETURN(Value object, evaluate(*expr.operands[0]));
    return member(object, expr.name);
  }
  case Expr::Item: {
    LLM_ASSIGN_OR_RETURN(Value object, evaluate(*expr.operands[0]));
    LLM_ASSIGN_OR_RETURN(Value key, evaluate(*expr.operands[1]));
    return item(object, key);
  }
  case Expr::Slice:
    return slice(expr);
  case Expr::Call:
    return call(expr);
  case Expr::Filter: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*expr.operands[0]));
    LLM_ASSIGN_OR_RETURN(CallArguments arguments, evaluate(expr.arguments));
    return filter(expr.name, value, arguments);
  }
  case Expr::Test: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*expr.operands[0]));
    LLM_ASSIGN_OR_RETURN(CallArguments arguments, evaluate(expr.arguments));
    LLM_ASSIGN_OR_RETURN(bool holds, test(expr.name, value, arguments));
    return Value::boolean(holds);
  }
  case Expr::Not: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*expr.operands[0]));
    return Value::boolean(!value.truthy());
  }
  case Expr::And:
  case Expr::Or: {
    Value value;
    for (const ExprPtr &operand : expr.operands) {
      LLM_ASSIGN_OR_RETURN(value, evaluate(*operand));
      if (value.truthy() == (expr.kind == Expr::Or))
        break;
    }
    return value;
  }
  case Expr::Unary: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*expr.operands[0]));
    return binary(expr.name, Value::integer(0), value);
  }
  case Expr::Binary: {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*expr.operands[0]));
    for (size_t i = 0; i < expr.names.size(); ++i) {
      LLM_ASSIGN_OR_RETURN(Value right, evaluate(*expr.operands[i + 1]));
      LLM_ASSIGN_OR_RETURN(value, binary(expr.names[i], value, right));
    }
    return value;
  }
  case Expr::Compare:
    return compare(expr);
  case Expr::Condition: {
    LLM_ASSIGN_OR_RETURN(Value test, evaluate(*expr.operands[1]));
    if (test.truthy())
      return evaluate(*expr.operands[0]);
    if (expr.operands[2])
      return evaluate(*expr.operands[2]);
    return Value::undefined("the inline if without else");
  }
  }
  return Status::internal("unknown expression");
}

Expected<Value> Interpreter::dictOf(const Expr &expr) {
  Dict items;
  for (size_t i = 0; i < expr.operands.size(); i += 2) {
    LLM_ASSIGN_OR_RETURN(Value key, evaluate(*expr.operands[i]));
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*expr.operands[i + 1]));
    if (!key.isString())
      return Status::unsupported("a dict whose key is not a string");
    auto known = std::find_if(items.begin(), items.end(), [&](auto &item) {
      return item.first.str() == key.asText().str();
    });
    if (known != items.end())
      known->second = std::move(value);
    else
      items.push_back({key.asText(), std::move(value)});
  }
  return Value::dict(std::move(items));
}

Expected<Value> Interpreter::member(const Value &object,
                                    const std::string &name) {
  if (object.isUndefined())
    return wrongType("a member", object);
  LLM_RETURN_IF_ERROR(charge(object.isDict() ? object.asDict().size() : 1));
  if (const Value *value = object.find(name))
    return *value;
  return Value::undefined(name);
}

/// `index` as Python counts it, or nothing if there is no such place.
static std::optional<size_t> place(int64_t index, size_t count) {
  auto size = static_cast<int64_t>(count);
  if (index < 0)
    index += size;
  if (index < 0 || index >= size)
    return std::nullopt;
  return static_cast<size_t>(index);
}

Expected<Value> Interpreter::item(const Value &object, const Value &key) {
  if (object.isUndefined())
    return wrongType("an item", object);
  if (key.isString() && (object.isDict() || object.isNamespace()))
    return member(object, key.asText().str());
  if (key.isInt() && (object.isList() || object.isString())) {
    LLM_RETURN_IF_ERROR(charge(object.isString() ? object.asText().size() : 1));
    List letters;
    if (object.isString()) {
      LLM_ASSIGN_OR_RETURN(letters, characters(object.asText()));
    }
    const List &items = object.isList() ? object.asList() : letters;
    std::optional<size_t> at = place(key.asInt(), items.size());
    return at ? items[*at]
              : Value::undefined("the item " + std::to_string(key.asInt()));
  }
  return Value::undefined("the item of a value of type '" +
                          std::string(object.typeName()) + "'");
}

Expected<Value> Interpreter::slice(const Expr &expr) {
  LLM_ASSIGN_OR_RETURN(Value object, evaluate(*expr.operands[0]));
  if (!object.isList() && !object.isString())
    return wrongType("a slice", object);
  LLM_RETURN_IF_ERROR(charge(object.weight()));
  std::optional<int64_t> bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!expr.operands[i + 1])
      continue;
    LLM_ASSIGN_OR_RETURN(Value bound, evaluate(*expr.operands[i + 1]));
    if (bound.isNone())
      continue;
    if (!bound.isInt() && !bound.isBool())
      return wrongType("a slice with a bound", bound);
    bounds[i] = bound.asInt();
  }
  LLM_ASSIGN_OR_RETURN(List items, iterate(object));
  auto count = static_cast<int64_t>(items.size());
  int64_t step = bounds[2].value_or(1);
  if (step == 0)
    return Status::invalidInput("a slice with step 0");
  auto clamp = [&](int64_t bound) {
    if (bound < 0)
      bound += count;
    return std::clamp<int64_t>(bound, step < 0 ? -1 : 0,
                               step < 0 ? count - 1 : count);
  };
  int64_t first = bounds[0] ? clamp(*bounds[0]) : (step < 0 ? count - 1 : 0);
  int64_t last = bounds[1] ? clamp(*bounds[1]) : (step < 0 ? -1 : count);
  List kept;
  // A step past the end could overflow.
  step = std::clamp<int64_t>(step, -count - 1, count + 1);
  for (int64_t i = first; step > 0 ? i < last : i > last; i += step)
    kept.push_back(items[static_cast<size_t>(i)]);
  if (object.isList())
    return Value::list(std::move(kept));
  Text text;
  for (const Value &letter : kept)
    text.append(letter.asText());
  return Value::string(std::move(text));
}

Expected<List> Interpreter::iterate(const Value &value) {
  LLM_RETURN_IF_ERROR(charge(value.weight()));
  if (value.isUndefined())
    return List();
  if (value.isList())
    return value.asList();
  if (value.isString())
    return characters(value.asText());
  if (value.isDict()) {
    List keys;
    for (const auto &item : value.asDict())
      keys.push_back(Value::string(item.first));
    return keys;
  }
  return wrongType("a loop over the items", value);
}

Expected<bool> Interpreter::contains(const Value &container,
                                     const Value &item) {
  LLM_RETURN_IF_ERROR(charge(container.weight()));
  if (container.isUndefined())
    return false;
  if (container.isString()) {
    if (!item.isString())
      return wrongType("'in' a string", item);
    return container.asText().str().find(item.asText().str()) !=
           std::string::npos;
  }
  if (container.isList())
    return std::find(container.asList().begin(), container.asList().end(),
                     item) != container.asList().end();
  if (container.isDict())
    return item.isString() && container.find(item.asText().str());
  return wrongType("'in'", container);
}

Expected<bool> Interpreter::less(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.isFloat() || b.isFloat() ? a.asDouble() < b.asDouble()
                                      : a.asInt() < b.asInt();
  if (a.isString() && b.isString()) {
    LLM_RETURN_IF_ERROR(charge(a.weight()));
    return a.asText().str() < b.asText().str();
  }
  return wrongType("an order", a.isNumber() || a.isString() ? b : a);
}

Expected<Value> Interpreter::compare(const Expr &expr) {
  LLM_ASSIGN_OR_RETURN(Value left, evaluate(*expr.operands[0]));
  for (size_t i = 0; i < expr.names.size(); ++i) {
    const std::string &name = expr.names[i];
    LLM_ASSIGN_OR_RETURN(Value right, evaluate(*expr.operands[i + 1]));
    bool holds = false;
    if (name == "==" || name == "!=") {
      LLM_RETURN_IF_ERROR(charge(std::min(left.weight(), right.weight())));
      holds = (left == right) == (name == "==");
    } else if (name == "in" || name == "not in") {
      LLM_ASSIGN_OR_RETURN(bool inside, contains(right, left));
      holds = inside == (name == "in");
    } else if (name == "<") {
      LLM_ASSIGN_OR_RETURN(holds, less(left, right));
    } else if (name == ">") {
      LLM_ASSIGN_OR_RETURN(holds, less(right, left));
    } else {
      // a <= b is a < b or a == b, so that NaN compares false.
      LLM_ASSIGN_OR_RETURN(holds, name == "<=" ? less(left, right)
                                               : less(right, left));
      holds = holds || left == right;
    }
    if (!holds)
      return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Expected<CallArguments> Interpreter::evaluate(const Arguments &arguments) {
  CallArguments values;
  for (const ExprPtr &argument : arguments.positional) {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*argument));
    values.positional.push_back(std::move(value));
  }
  for (const auto &[name, argument] : arguments.named) {
    LLM_ASSIGN_OR_RETURN(Value value, evaluate(*argument));
    values.named.push_back({name, std::move(value)});
  }
  return values;
}

Expected<Value> Interpreter::call(const Expr &expr) {
  const Expr &callee = *expr.operands[0];
  if (callee.kind == Expr::Member) {
    LLM_ASSIGN_OR_RETURN(Value object, evaluate(*callee.operands[0]));
    LLM_ASSIGN_OR_RETURN(CallArguments arguments, evaluate(expr.arguments));
    return method(object, callee.name, arguments);
  }
  LLM_ASSIGN_OR_RETURN(Value function, evaluate(callee));
  LLM_ASSIGN_OR_RETURN(CallArguments arguments, evaluate(expr.arguments));
  if (function.isMacro())
    return callMacro(*function.asMacro(), arguments);
  if (callee.kind == Expr::Variable && function.isUndefined())
    return this->function(callee.name, arguments);
  return wrongType("a call", function);
}

Expected<Value> Interpreter::callMacro(const Macro &macro,
                                       const CallArguments &arguments) {
  if (arguments.positional.size() > macro.parameters.size())
    return Status::invalidInput("macro '" + macro.name +
                                "' takes fewer arguments");
  for (const auto &named : arguments.named)
    if (std::none_of(macro.parameters.begin(), macro.parameters.end(),
                     [&](auto &p) { return p.first == named.first; }))
      return Status::invalidInput("macro '" + macro.name +
                                  "' has no parameter '" + named.first + "'");
  size_t outer = std::exchange(base, scopes.size());
  scopes.emplace_back();
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto &[name, fallback] = macro.parameters[i];
    Value value = Value::undefined(name);
    if (const Value *given = arguments.get(i, name))
      value = *given;
    else if (fallback) {
      LLM_ASSIGN_OR_RETURN(value, evaluate(*fallback));
    }
    LLM_RETURN_IF_ERROR(assign({name}, value));
  }
  LLM_ASSIGN_OR_RETURN(Text text, capture(*macro.body));
  scopes.pop_back();
  base = outer;
  return Value::string(std::move(text));
}

} // namespace llm::runtime::jinja
