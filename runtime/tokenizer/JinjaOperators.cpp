//===- JinjaOperators.cpp - arithmetic ------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/JinjaInterpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llm::runtime::jinja {

static Status overflow() {
  return Status::invalidInput("an integer beyond 64 bits");
}

static Expected<Value> integerPower(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Value::number(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t result = 1;
  // Past 63 doublings only 0, 1 and -1 stay in range.
  if (exponent > 64 && (base > 1 || base < -1))
    return overflow();
  if (base == -1)
    return Value::integer(exponent % 2 == 0 ? 1 : -1);
  if (base == 0 || base == 1)
    return Value::integer(exponent == 0 ? 1 : base);
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result))
      return overflow();
  return Value::integer(result);
}

/// Python's arithmetic on integers: // and % round towards minus infinity.
static Expected<Value> onIntegers(const std::string &op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "+")
    return __builtin_add_overflow(a, b, &result) ? Expected<Value>(overflow())
                                                 : Value::integer(result);
  if (op == "-")
    return __builtin_sub_overflow(a, b, &result) ? Expected<Value>(overflow())
                                                 : Value::integer(result);
  if (op == "*")
    return __builtin_mul_overflow(a, b, &result) ? Expected<Value>(overflow())
                                                 : Value::integer(result);
  if (op == "**")
    return integerPower(a, b);
  if (b == 0)
    return Status::invalidInput("division by zero");
  if (op == "/")
    return Value::number(static_cast<double>(a) / static_cast<double>(b));
  if (a == std::numeric_limits<int64_t>::min() && b == -1)
    return op == "%" ? Expected<Value>(Value::integer(0)) : overflow();
  int64_t quotient = a / b, remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    --quotient;
    remainder += b;
  }
  return Value::integer(op == "//" ? quotient : remainder);
}

static Expected<Value> onDoubles(const std::string &op, double a, double b) {
  if (op == "+")
    return Value::number(a + b);
  if (op == "-")
    return Value::number(a - b);
  if (op == "*")
    return Value::number(a * b);
  if (op == "**")
    return Value::number(std::pow(a, b));
  if (b == 0)
    return Status::invalidInput("division by zero");
  if (op == "/")
    return Value::number(a / b);
  double quotient = std::floor(a / b);
  return Value::number(op == "//" ? quotient : a - quotient * b);
}

Expected<Value> Interpreter::binary(const std::string &op, const Value &a,
                                    const Value &b) {
  if (op == "~") {
    LLM_RETURN_IF_ERROR(charge(a.weight() + b.weight()));
    Text text = toText(a);
    text.append(toText(b));
    return Value::string(std::move(text));
  }
  if (a.isNumber() && b.isNumber())
    return a.isFloat() || b.isFloat()
               ? onDoubles(op, a.asDouble(), b.asDouble())
               : onIntegers(op, a.asInt(), b.asInt());
  if (op == "+" && a.isString() && b.isString()) {
    LLM_RETURN_IF_ERROR(charge(a.weight() + b.weight()));
    Text text = a.asText();
    text.append(b.asText());
    return Value::string(std::move(text));
  }
  if (op == "+" && a.isList() && b.isList()) {
    LLM_RETURN_IF_ERROR(charge(a.weight() + b.weight()));
    List items = a.asList();
    items.insert(items.end(), b.asList().begin(), b.asList().end());
    return Value::list(std::move(items));
  }
  if (op == "*" && (a.isString() || b.isString()) && (a.isInt() || b.isInt())) {
    const Value &text = a.isString() ? a : b;
    int64_t count = std::max<int64_t>(0, (a.isInt() ? a : b).asInt());
    if (static_cast<uint64_t>(count) > maxWork)
      return charge(maxWork + 1).withContext("*");
    LLM_RETURN_IF_ERROR(charge(text.weight() * static_cast<size_t>(count)));
    Text repeated;
    for (int64_t i = 0; i < count; ++i)
      repeated.append(text.asText());
    return Value::string(std::move(repeated));
  }
  if (op == "%" && a.isString())
    return Status::unsupported("formatting by '%'");
  return wrongType("'" + op + "'", a.isNumber() ? b : a);
}

} // namespace llm::runtime::jinja
