//===- JinjaSyntax.h - tree of chat templates ------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The syntax tree of a chat template, and the reader that makes it.

#ifndef LLM_RUNTIME_TOKENIZER_JINJASYNTAX_H
#define LLM_RUNTIME_TOKENIZER_JINJASYNTAX_H

#include "runtime/core/Status.h"
#include "runtime/tokenizer/JinjaValue.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llm::runtime::jinja {

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

struct Token {
  enum Kind {
    Data,       // text between tags
    BlockBegin, // {%
    BlockEnd,
    PrintBegin, // {{
    PrintEnd,
    Name,
    String,
    Integer,
    Float,
    Operator,
    End,
  };
  Kind kind = End;
  int line = 1;
  /// The name, the operator, or the content of data and strings.
  std::string text;
  int64_t integer = 0;
  double number = 0;
};

/// Splits a template, as Jinja does with trim_blocks and lstrip_blocks on and a
/// trailing newline dropped (how `transformers` compiles chat templates).
/// Source: Jinja's template designer documentation, "Whitespace Control".
Expected<std::vector<Token>> tokenize(std::string_view source);

//===----------------------------------------------------------------------===//
// Tree
//===----------------------------------------------------------------------===//

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// Arguments of a call, filter or test.
struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

struct Expr {
  enum Kind {
    Constant, // value
    Variable, // name
    ListOf,   // operands
    DictOf,   // operands: key, value, key, value, …
    Member,   // operands[0].name
    Item,     // operands[0][operands[1]]
    Slice,    // operands[0][operands[1]:operands[2]:operands[3]], null if left
              // out
    Call,     // operands[0](arguments)
    Filter,   // operands[0] | name(arguments)
    Test,     // operands[0] is name(arguments)
    Not,      // operands[0]
    And,
    Or,
    Unary,     // name: + -
    Binary,    // name: + - * / // % ** ~
    Compare,   // operands[0] names[0] operands[1] names[1] …
    Condition, // operands[0] if operands[1] else operands[2] (may be null)
  };
  Kind kind;
  int line;
  std::string name;
  std::vector<std::string> names;
  Value value;
  std::vector<ExprPtr> operands;
  Arguments arguments;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

/// A macro, which a value can refer to.
struct Macro {
  std::string name;
  std::vector<std::pair<std::string, ExprPtr>> parameters; // with defaults
  Body *body = nullptr;
};

struct Stmt {
  enum Kind {
    Data,     // text
    Print,    // expr
    If,       // expr, body, otherwise
    For,      // targets in expr, filter, body, otherwise
    Set,      // targets = expr
    SetItem,  // targets[0].member = expr
    SetBlock, // targets[0] = what body prints
    Define,   // macro
    Break,
    Continue,
    Block, // body
  };
  Kind kind;
  int line;
  std::string text;
  ExprPtr expr, filter;
  std::vector<std::string> targets;
  std::string member;
  Body body, otherwise;
  Macro macro;
};

/// Parses a template. Unsupported, naming it with its line, for a construct
/// that is not interpreted here.
Expected<Body> parse(std::string_view source);

} // namespace llm::runtime::jinja

#endif // LLM_RUNTIME_TOKENIZER_JINJASYNTAX_H
