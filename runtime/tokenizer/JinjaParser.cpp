//===- JinjaParser.cpp - reading chat templates ---------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/JinjaSyntax.h"

#include <algorithm>
#include <initializer_list>

namespace llm::runtime::jinja {

namespace {

/// Deeper nesting of expressions and blocks is refused, so that reading and
/// running a template may recurse.
constexpr int maxSyntaxDepth = 200;

class Parser {
public:
  explicit Parser(std::vector<Token> tokens) : tokens(std::move(tokens)) {}

  Expected<Body> run() {
    Body body;
    LLM_RETURN_IF_ERROR(parseBody({}, body));
    return body;
  }

private:
  //===--------------------------------------------------------------------===//
  // Tokens
  //===--------------------------------------------------------------------===//

  const Token &peek(size_t ahead = 0) const {
    return tokens[std::min(pos + ahead, tokens.size() - 1)];
  }
  Token take() {
    Token token = peek();
    if (pos + 1 < tokens.size())
      ++pos;
    return token;
  }
  bool isName(std::string_view name, size_t ahead = 0) const {
    return peek(ahead).kind == Token::Name && peek(ahead).text == name;
  }
  bool isOperator(std::string_view spelled) const {
    return peek().kind == Token::Operator && peek().text == spelled;
  }
  bool skipName(std::string_view name) {
    return isName(name) ? (take(), true) : false;
  }
  bool skipOperator(std::string_view spelled) {
    return isOperator(spelled) ? (take(), true) : false;
  }
  std::string where() const { return "line " + std::to_string(peek().line); }
  std::string seen() const {
    switch (peek().kind) {
    case Token::BlockEnd:
      return "the end of the tag";
    case Token::PrintEnd:
      return "'}}'";
    case Token::End:
    case Token::Data:
    case Token::BlockBegin:
    case Token::PrintBegin:
      return "the end of the template";
    case Token::Integer:
    case Token::Float:
      return "a number";
    default:
      return "'" + peek().text + "'";
    }
  }
  Status expected(std::string_view what) const {
    return Status::invalidInput(where() + ": " + std::string(what) +
                                " expected, not " + seen());
  }
  Status unsupported(const std::string &what) const {
    return Status::unsupported(where() + ": " + what);
  }
  Status expectOperator(std::string_view spelled) {
    if (!skipOperator(spelled))
      return expected("'" + std::string(spelled) + "'");
    return Status::success();
  }
  Status expectKind(Token::Kind kind, std::string_view what) {
    if (peek().kind != kind)
      return expected(what);
    take();
    return Status::success();
  }
  Expected<std::string> expectName() {
    if (peek().kind != Token::Name)
      return expected("a name");
    return take().text;
  }

  /// Counts the levels of recursion.
  struct Level {
    explicit Level(int &depth) : depth(depth) { ++depth; }
    ~Level() { --depth; }
    int &depth;
  };
  Status checkDepth() const {
    if (depth > maxSyntaxDepth)
      return unsupported("nested deeper than " +
                         std::to_string(maxSyntaxDepth) + " levels");
    return Status::success();
  }

  ExprPtr make(Expr::Kind kind) const {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = peek().line;
    return expr;
  }
  ExprPtr make(Expr::Kind kind, ExprPtr operand) const {
    ExprPtr expr = make(kind);
    expr->operands.push_back(std::move(operand));
    return expr;
  }

  //===--------------------------------------------------------------------===//
  // Expressions, from the loosest binding to the tightest
  //===--------------------------------------------------------------------===//

  Expected<ExprPtr> expression() {
    Level level(depth);
    LLM_RETURN_IF_ERROR(checkDepth());
    LLM_ASSIGN_OR_RETURN(ExprPtr expr, orExpression());
    // "a if b if c" chains, so the count of levels is that of the loop.
    for (int levels = 0; skipName("if"); ++levels) {
      if (levels > maxSyntaxDepth)
        return unsupported("too long a chain of conditions");
      ExprPtr condition = make(Expr::Condition, std::move(expr));
      LLM_ASSIGN_OR_RETURN(ExprPtr test, orExpression());
      condition->operands.push_back(std::move(test));
      ExprPtr otherwise;
      if (skipName("else")) {
        LLM_ASSIGN_OR_RETURN(otherwise, expression());
      }
      condition->operands.push_back(std::move(otherwise));
      expr = std::move(condition);
    }
    return expr;
  }

  Expected<ExprPtr> orExpression() {
    LLM_ASSIGN_OR_RETURN(ExprPtr left, andExpression());
    if (!isName("or"))
      return left;
    // One flat node, however many operands.
    ExprPtr expr = make(Expr::Or, std::move(left));
    while (skipName("or")) {
      LLM_ASSIGN_OR_RETURN(ExprPtr right, andExpression());
      expr->operands.push_back(std::move(right));
    }
    return expr;
  }

  Expected<ExprPtr> andExpression() {
    LLM_ASSIGN_OR_RETURN(ExprPtr left, notExpression());
    if (!isName("and"))
      return left;
    ExprPtr expr = make(Expr::And, std::move(left));
    while (skipName("and")) {
      LLM_ASSIGN_OR_RETURN(ExprPtr right, notExpression());
      expr->operands.push_back(std::move(right));
    }
    return expr;
  }

  Expected<ExprPtr> notExpression() {
    Level level(depth);
    LLM_RETURN_IF_ERROR(checkDepth());
    if (!skipName("not"))
      return compareExpression();
    LLM_ASSIGN_OR_RETURN(ExprPtr operand, notExpression());
    return make(Expr::Not, std::move(operand));
  }

  Expected<ExprPtr> compareExpression() {
    LLM_ASSIGN_OR_RETURN(ExprPtr left, binary(0));
    ExprPtr compare;
    for (;;) {
      std::string name;
      for (std::string_view spelled : {"==", "!=", "<", "<=", ">", ">="})
        if (isOperator(spelled))
          name = take().text;
      if (name.empty() && skipName("in"))
        name = "in";
      if (name.empty() && isName("not") && isName("in", 1)) {
        take();
        take();
        name = "not in";
      }
      if (name.empty())
        return compare ? std::move(compare) : std::move(left);
      if (!compare)
        compare = make(Expr::Compare, std::move(left));
      compare->names.push_back(name);
      LLM_ASSIGN_OR_RETURN(ExprPtr right, binary(0));
      compare->operands.push_back(std::move(right));
    }
  }

  /// +, - over ~ over *, /, //, % over **: all to the left. A chain is one
  /// node: operands[0] names[0] operands[1] names[1] …
  Expected<ExprPtr> binary(size_t rank) {
    static const std::vector<std::vector<std::string_view>> ranks = {
        {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
    if (rank == ranks.size())
      return unary(/*withFilter=*/true);
    LLM_ASSIGN_OR_RETURN(ExprPtr left, binary(rank + 1));
    ExprPtr chain;
    for (;;) {
      std::string name;
      for (std::string_view spelled : ranks[rank])
        if (name.empty() && isOperator(spelled))
          name = take().text;
      if (name.empty())
        return chain ? std::move(chain) : std::move(left);
      if (!chain)
        chain = make(Expr::Binary, std::move(left));
      chain->names.push_back(name);
      LLM_ASSIGN_OR_RETURN(ExprPtr right, binary(rank + 1));
      chain->operands.push_back(std::move(right));
    }
  }

  Expected<ExprPtr> unary(bool withFilter) {
    Level level(depth);
    LLM_RETURN_IF_ERROR(checkDepth());
    ExprPtr expr;
    if (isOperator("-") || isOperator("+")) {
      std::string name = take().text;
      LLM_ASSIGN_OR_RETURN(ExprPtr operand, unary(/*withFilter=*/false));
      expr = make(Expr::Unary, std::move(operand));
      expr->name = name;
    } else {
      LLM_ASSIGN_OR_RETURN(expr, primary());
    }
    return postfix(std::move(expr), withFilter);
  }

  /// Members, items, calls; then filters, tests and calls of their results.
  Expected<ExprPtr> postfix(ExprPtr expr, bool withFilter) {
    for (int links = 0;; ++links) {
      // The tree is as deep as the chain is long.
      if (links > maxSyntaxDepth / 2)
        return unsupported("too long a chain of members, calls and filters");
      if (skipOperator(".")) {
        ExprPtr member = make(Expr::Member, std::move(expr));
        if (peek().kind == Token::Integer) {
          member->kind = Expr::Item;
          ExprPtr index = make(Expr::Constant);
          index->value = Value::integer(take().integer);
          member->operands.push_back(std::move(index));
        } else {
          LLM_ASSIGN_OR_RETURN(member->name, expectName());
        }
        expr = std::move(member);
      } else if (skipOperator("[")) {
        LLM_ASSIGN_OR_RETURN(expr, subscript(std::move(expr)));
      } else if (isOperator("(")) {
        ExprPtr call = make(Expr::Call, std::move(expr));
        LLM_ASSIGN_OR_RETURN(call->arguments, arguments());
        expr = std::move(call);
      } else if (withFilter && skipOperator("|")) {
        ExprPtr filter = make(Expr::Filter, std::move(expr));
        LLM_ASSIGN_OR_RETURN(filter->name, expectName());
        if (isOperator("(")) {
          LLM_ASSIGN_OR_RETURN(filter->arguments, arguments());
        }
        expr = std::move(filter);
      } else if (withFilter && skipName("is")) {
        LLM_ASSIGN_OR_RETURN(expr, test(std::move(expr)));
      } else {
        return expr;
      }
    }
  }

  Expected<ExprPtr> subscript(ExprPtr object) {
    ExprPtr expr = make(Expr::Item, std::move(object));
    ExprPtr parts[3];
    size_t part = 0;
    bool slice = false;
    while (!isOperator("]")) {
      if (skipOperator(":")) {
        slice = true;
        if (++part > 2)
          return expected("']'");
        continue;
      }
      if (parts[part])
        return expected("']'");
      LLM_ASSIGN_OR_RETURN(parts[part], expression());
    }
    take();
    if (!slice && !parts[0])
      return expected("an index");
    if (slice)
      expr->kind = Expr::Slice;
    for (size_t i = 0; i < (slice ? 3u : 1u); ++i)
      expr->operands.push_back(std::move(parts[i]));
    return expr;
  }

  Expected<ExprPtr> test(ExprPtr operand) {
    bool negated = skipName("not");
    ExprPtr expr = make(Expr::Test, std::move(operand));
    LLM_ASSIGN_OR_RETURN(expr->name, expectName());
    bool hasArgument =
        (peek().kind == Token::Name && !isName("else") && !isName("or") &&
         !isName("and") && !isName("if") && !isName("is") && !isName("in") &&
         !isName("not") && !isName("recursive")) ||
        peek().kind == Token::String || peek().kind == Token::Integer ||
        peek().kind == Token::Float || isOperator("[") || isOperator("{");
    if (isOperator("(")) {
      LLM_ASSIGN_OR_RETURN(expr->arguments, arguments());
    } else if (hasArgument) {
      LLM_ASSIGN_OR_RETURN(ExprPtr argument, primary());
      LLM_ASSIGN_OR_RETURN(argument,
                           postfix(std::move(argument), /*withFilter=*/false));
      expr->arguments.positional.push_back(std::move(argument));
    }
    return negated ? make(Expr::Not, std::move(expr)) : std::move(expr);
  }

  Expected<Arguments> arguments() {
    Arguments result;
    LLM_RETURN_IF_ERROR(expectOperator("("));
    while (!skipOperator(")")) {
      if (isOperator("*") || isOperator("**"))
        return unsupported("unpacked arguments");
      if (peek().kind == Token::Name && peek(1).kind == Token::Operator &&
          peek(1).text == "=") {
        std::string name = take().text;
        take();
        LLM_ASSIGN_OR_RETURN(ExprPtr value, expression());
        result.named.push_back({std::move(name), std::move(value)});
      } else {
        if (!result.named.empty())
          return expected("a named argument");
        LLM_ASSIGN_OR_RETURN(ExprPtr value, expression());
        result.positional.push_back(std::move(value));
      }
      if (!isOperator(")"))
        LLM_RETURN_IF_ERROR(expectOperator(","));
    }
    return result;
  }

  Expected<ExprPtr> primary() {
    Level level(depth);
    LLM_RETURN_IF_ERROR(checkDepth());
    ExprPtr expr = make(Expr::Constant);
    switch (peek().kind) {
    case Token::Integer:
      expr->value = Value::integer(take().integer);
      return expr;
    case Token::Float:
      expr->value = Value::number(take().number);
      return expr;
    case Token::String: {
      std::string text;
      while (peek().kind == Token::String) // adjacent ones are one
        text += take().text;
      expr->value = Value::string(Text(std::move(text)));
      return expr;
    }
    case Token::Name: {
      std::string name = take().text;
      if (name == "true" || name == "True")
        expr->value = Value::boolean(true);
      else if (name == "false" || name == "False")
        expr->value = Value::boolean(false);
      else if (name == "none" || name == "None")
        expr->value = Value::none();
      else {
        expr->kind = Expr::Variable;
        expr->name = std::move(name);
      }
      return expr;
    }
    default:
      break;
    }
    if (skipOperator("(")) {
      // A tuple is a list here; only its printed form tells.
      LLM_ASSIGN_OR_RETURN(bool tuple, items(")", *expr));
      if (!tuple && expr->operands.size() == 1)
        return std::move(expr->operands[0]);
      expr->kind = Expr::ListOf;
      return expr;
    }
    if (skipOperator("[")) {
      LLM_RETURN_IF_ERROR(items("]", *expr));
      expr->kind = Expr::ListOf;
      return expr;
    }
    if (skipOperator("{")) {
      expr->kind = Expr::DictOf;
      while (!skipOperator("}")) {
        LLM_ASSIGN_OR_RETURN(ExprPtr key, expression());
        LLM_RETURN_IF_ERROR(expectOperator(":"));
        LLM_ASSIGN_OR_RETURN(ExprPtr value, expression());
        expr->operands.push_back(std::move(key));
        expr->operands.push_back(std::move(value));
        if (!isOperator("}"))
          LLM_RETURN_IF_ERROR(expectOperator(","));
      }
      return expr;
    }
    return expected("an expression");
  }

  /// Items up to `close`; true if there was a comma.
  Expected<bool> items(std::string_view close, Expr &into) {
    bool comma = false;
    while (!skipOperator(close)) {
      LLM_ASSIGN_OR_RETURN(ExprPtr item, expression());
      into.operands.push_back(std::move(item));
      if (!isOperator(close)) {
        LLM_RETURN_IF_ERROR(expectOperator(","));
        comma = true;
      }
    }
    return comma;
  }

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  /// Statements up to, and without, a block that starts with one of `ends`.
  Status parseBody(std::initializer_list<std::string_view> ends, Body &body) {
    Level level(depth);
    LLM_RETURN_IF_ERROR(checkDepth());
    for (;;) {
      auto stmt = std::make_unique<Stmt>();
      stmt->line = peek().line;
      switch (peek().kind) {
      case Token::End:
        if (ends.size() > 0)
          return expected("'" + std::string(*(ends.end() - 1)) + "'");
        return Status::success();
      case Token::Data:
        stmt->kind = Stmt::Data;
        stmt->text = take().text;
        break;
      case Token::PrintBegin: {
        take();
        stmt->kind = Stmt::Print;
        LLM_ASSIGN_OR_RETURN(stmt->expr, expression());
        LLM_RETURN_IF_ERROR(expectKind(Token::PrintEnd, "'}}'"));
        break;
      }
      default: {
        take(); // {%
        for (std::string_view end : ends)
          if (isName(end))
            return Status::success();
        LLM_RETURN_IF_ERROR(statement(*stmt));
        break;
      }
      }
      body.push_back(std::move(stmt));
    }
  }

  Status endTag() { return expectKind(Token::BlockEnd, "the end of the tag"); }
  /// The name and end of a closing tag.
  Status close() {
    take();
    return endTag();
  }

  Status statement(Stmt &stmt) {
    if (skipName("if"))
      return ifStatement(stmt);
    if (skipName("for"))
      return forStatement(stmt);
    if (skipName("set"))
      return setStatement(stmt);
    if (skipName("macro"))
      return macroStatement(stmt);
    if (isName("break") || isName("continue")) {
      stmt.kind = isName("break") ? Stmt::Break : Stmt::Continue;
      if (loops == 0)
        return unsupported("'" + peek().text + "' outside a loop");
      take();
      return endTag();
    }
    if (skipName("generation")) {
      // Marks what the assistant says, for training; it prints as it is.
      stmt.kind = Stmt::Block;
      LLM_RETURN_IF_ERROR(endTag());
      LLM_RETURN_IF_ERROR(parseBody({"endgeneration"}, stmt.body));
      return close();
    }
    if (peek().kind == Token::Name)
      return unsupported("statement '" + peek().text + "'");
    return expected("a statement");
  }

  Status ifStatement(Stmt &stmt) {
    stmt.kind = Stmt::If;
    LLM_ASSIGN_OR_RETURN(stmt.expr, expression());
    LLM_RETURN_IF_ERROR(endTag());
    LLM_RETURN_IF_ERROR(parseBody({"elif", "else", "endif"}, stmt.body));
    if (isName("elif")) {
      // An elif is an if inside the else, at the depth of its chain.
      Level level(depth);
      LLM_RETURN_IF_ERROR(checkDepth());
      auto inner = std::make_unique<Stmt>();
      inner->line = peek().line;
      take();
      LLM_RETURN_IF_ERROR(ifStatement(*inner));
      stmt.otherwise.push_back(std::move(inner));
      return Status::success();
    }
    if (skipName("else")) {
      LLM_RETURN_IF_ERROR(endTag());
      LLM_RETURN_IF_ERROR(parseBody({"endif"}, stmt.otherwise));
    }
    return close();
  }

  Status parseTargets(Stmt &stmt) {
    bool parenthesised = skipOperator("(");
    do {
      if (!stmt.targets.empty() && peek().kind != Token::Name)
        break; // a trailing comma
      LLM_ASSIGN_OR_RETURN(std::string name, expectName());
      stmt.targets.push_back(std::move(name));
    } while (skipOperator(","));
    return parenthesised ? expectOperator(")") : Status::success();
  }

  Status forStatement(Stmt &stmt) {
    stmt.kind = Stmt::For;
    LLM_RETURN_IF_ERROR(parseTargets(stmt));
    if (!skipName("in"))
      return expected("'in'");
    LLM_ASSIGN_OR_RETURN(stmt.expr, orExpression());
    if (skipName("if")) {
      LLM_ASSIGN_OR_RETURN(stmt.filter, expression());
    }
    if (isName("recursive"))
      return unsupported("a recursive loop");
    LLM_RETURN_IF_ERROR(endTag());
    ++loops;
    LLM_RETURN_IF_ERROR(parseBody({"else", "endfor"}, stmt.body));
    --loops;
    if (skipName("else")) {
      LLM_RETURN_IF_ERROR(endTag());
      LLM_RETURN_IF_ERROR(parseBody({"endfor"}, stmt.otherwise));
    }
    return close();
  }

  Status setStatement(Stmt &stmt) {
    LLM_RETURN_IF_ERROR(parseTargets(stmt));
    stmt.kind = Stmt::Set;
    if (stmt.targets.size() == 1 && skipOperator(".")) {
      stmt.kind = Stmt::SetItem;
      LLM_ASSIGN_OR_RETURN(stmt.member, expectName());
    }
    if (skipOperator("=")) {
      LLM_ASSIGN_OR_RETURN(stmt.expr, expression());
      if (isOperator(",")) {
        ExprPtr tuple = make(Expr::ListOf, std::move(stmt.expr));
        while (skipOperator(",")) {
          LLM_ASSIGN_OR_RETURN(ExprPtr item, expression());
          tuple->operands.push_back(std::move(item));
        }
        stmt.expr = std::move(tuple);
      }
      return endTag();
    }
    if (stmt.kind != Stmt::Set || stmt.targets.size() != 1)
      return expected("'='");
    if (isOperator("|"))
      return unsupported("a filter on a block that sets a variable");
    stmt.kind = Stmt::SetBlock;
    LLM_RETURN_IF_ERROR(endTag());
    LLM_RETURN_IF_ERROR(parseBody({"endset"}, stmt.body));
    return close();
  }

  Status macroStatement(Stmt &stmt) {
    stmt.kind = Stmt::Define;
    LLM_ASSIGN_OR_RETURN(stmt.macro.name, expectName());
    LLM_RETURN_IF_ERROR(expectOperator("("));
    while (!skipOperator(")")) {
      LLM_ASSIGN_OR_RETURN(std::string name, expectName());
      ExprPtr fallback;
      if (skipOperator("=")) {
        LLM_ASSIGN_OR_RETURN(fallback, expression());
      }
      stmt.macro.parameters.push_back({std::move(name), std::move(fallback)});
      if (!isOperator(")"))
        LLM_RETURN_IF_ERROR(expectOperator(","));
    }
    LLM_RETURN_IF_ERROR(endTag());
    int outerLoops = std::exchange(loops, 0);
    LLM_RETURN_IF_ERROR(parseBody({"endmacro"}, stmt.body));
    loops = outerLoops;
    stmt.macro.body = &stmt.body;
    LLM_RETURN_IF_ERROR(expectKind(Token::Name, "'endmacro'"));
    if (peek().kind == Token::Name) // may repeat the macro's name
      take();
    return endTag();
  }

  std::vector<Token> tokens;
  size_t pos = 0;
  int depth = 0;
  int loops = 0;
};

} // namespace

Expected<Body> parse(std::string_view source) {
  LLM_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source));
  return Parser(std::move(tokens)).run();
}

} // namespace llm::runtime::jinja
