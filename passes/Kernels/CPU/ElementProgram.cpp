//===- ElementProgram.cpp - Elementwise operators in postfix --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/ElementProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

namespace mlir::llm {

using Operator = ElementProgram::Operator;

static Value constant(Emitter &e, Value like, double value) {
  return e.splatLike(like, static_cast<float>(value));
}

/// x / (1 + e^-a), 0 where `a` is below -87.
static Value timesLogistic(Emitter &e, Value x, Value a) {
  Value power = e.expUpTo87(arith::NegFOp::create(e, a));
  return e.zeroBelow(a, -87, e.div(x, e.add(constant(e, a, 1), power)));
}

static Value logistic(Emitter &e, Value a) {
  return timesLogistic(e, constant(e, a, 1), a);
}

/// x / 2 * (1 + t)
static Value halfTimes(Emitter &e, Value x, Value t) {
  return e.mul(e.mul(constant(e, x, 0.5), x), e.add(constant(e, x, 1), t));
}

static Operator lookupBinary(StringRef name) {
  return llvm::StringSwitch<Operator>(name)
      .Case("add", [](Emitter &e, Value a, Value b) { return e.add(a, b); })
      .Case("sub", [](Emitter &e, Value a, Value b) { return e.sub(a, b); })
      .Case("mul", [](Emitter &e, Value a, Value b) { return e.mul(a, b); })
      .Case("div", [](Emitter &e, Value a, Value b) { return e.div(a, b); })
      .Case("max", [](Emitter &e, Value a, Value b) { return e.max(a, b); })
      .Case("min", [](Emitter &e, Value a, Value b) { return e.min(a, b); })
      .Default(nullptr);
}

static Operator lookupUnary(StringRef name) {
  return llvm::StringSwitch<Operator>(name)
      .Case("neg",
            [](Emitter &e, Value a, Value) -> Value {
              return arith::NegFOp::create(e, a);
            })
      .Case("abs",
            [](Emitter &e, Value a, Value) -> Value {
              return math::AbsFOp::create(e, a);
            })
      .Case("exp", [](Emitter &e, Value a, Value) { return e.exp(a); })
      .Case("log",
            [](Emitter &e, Value a, Value) -> Value {
              return math::LogOp::create(e, a);
            })
      .Case("sqrt", [](Emitter &e, Value a, Value) { return e.sqrt(a); })
      .Case("reciprocal", [](Emitter &e, Value a,
                             Value) { return e.div(constant(e, a, 1), a); })
      .Case("sigmoid",
            [](Emitter &e, Value a, Value) { return logistic(e, a); })
      .Case("tanh",
            [](Emitter &e, Value a, Value) -> Value {
              return math::TanhOp::create(e, a);
            })
      .Case("silu",
            [](Emitter &e, Value a, Value) { return timesLogistic(e, a, a); })
      .Case("relu", [](Emitter &e, Value a,
                       Value) { return e.max(a, constant(e, a, 0)); })
      .Case("gelu",
            [](Emitter &e, Value a, Value) {
              Value scaled = e.mul(a, constant(e, a, M_SQRT1_2));
              return halfTimes(e, a, math::ErfOp::create(e, scaled));
            })
      .Case("gelu_tanh",
            [](Emitter &e, Value a, Value) {
              // (1 + tanh(u)) / 2 = logistic(2 u),
              // u = sqrt(2 / pi) * (x + 0.044715 x^3)
              Value cube = e.mul(a, e.mul(a, a));
              Value inner = e.fma(constant(e, a, 0.044715), cube, a);
              Value twice =
                  e.mul(inner, constant(e, a, 2 * M_2_SQRTPI * M_SQRT1_2));
              return timesLogistic(e, a, twice);
            })
      .Case("gelu_sigmoid",
            [](Emitter &e, Value a, Value) {
              return timesLogistic(e, a, e.mul(a, constant(e, a, 1.702)));
            })
      .Case("softplus",
            [](Emitter &e, Value a, Value) {
              // log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)): no overflow.
              Value magnitude = math::AbsFOp::create(e, a);
              Value small = e.exp(arith::NegFOp::create(e, magnitude));
              return e.add(e.max(a, constant(e, a, 0)),
                           math::Log1pOp::create(e, small));
            })
      .Case("erf",
            [](Emitter &e, Value a, Value) -> Value {
              return math::ErfOp::create(e, a);
            })
      .Case("square", [](Emitter &e, Value a, Value) { return e.mul(a, a); })
      .Default(nullptr);
}

static FailureOr<ElementProgram::Step> parseStep(rt::KernelOp op,
                                                 StringRef text) {
  using Step = ElementProgram::Step;
  Step step{Step::Input};
  StringRef rest = text;
  if (Operator apply = lookupBinary(text)) {
    step.kind = Step::Binary;
    step.apply = apply;
  } else if (Operator apply = lookupUnary(text)) {
    step.kind = Step::Unary;
    step.apply = apply;
  } else if (rest.consume_front("const:")) {
    uint32_t bits;
    if (rest.getAsInteger(0, bits))
      return op.emitOpError("'") << text << "' is not const: and f32 bits";
    step.kind = Step::Constant;
    step.constant = llvm::bit_cast<float>(bits);
  } else if (!rest.consume_front("in") || rest.getAsInteger(10, step.input) ||
             step.input < 0) {
    return op.emitOpError("unknown elementwise operator '") << text << "'";
  }
  return step;
}

FailureOr<ElementProgram> ElementProgram::parse(KernelBuilder &kernel) {
  rt::KernelOp op = kernel.kernel();
  auto ops = op.getParams().getAs<ArrayAttr>("ops");
  if (!ops)
    return op.emitOpError("needs the parameter 'ops', an array of strings");
  ElementProgram program;
  int64_t depth = 0;
  for (Attribute attr : ops) {
    auto text = dyn_cast<StringAttr>(attr);
    if (!text)
      return op.emitOpError("'ops' is an array of strings");
    FailureOr<Step> step = parseStep(op, text.getValue());
    if (failed(step))
      return failure();
    int64_t taken = step->kind == Step::Binary  ? 2
                    : step->kind == Step::Unary ? 1
                                                : 0;
    if (depth < taken)
      return op.emitOpError("'") << text.getValue() << "' finds " << depth
                                 << " values on the stack";
    depth += 1 - taken;
    if (step->kind == Step::Input) {
      if (step->input > kMaxInputs)
        return op.emitOpError("'")
               << text.getValue() << "' is not among the inputs";
      program.numInputs = std::max(program.numInputs, step->input + 1);
    }
    program.steps.push_back(*step);
  }
  if (depth == 0)
    return op.emitOpError("'ops' leaves no value");
  program.numOutputs = depth;
  return program;
}

SmallVector<Value>
ElementProgram::run(Emitter &e, int64_t lanes,
                    function_ref<Value(int64_t)> input) const {
  SmallVector<Value> stack;
  for (const Step &step : steps) {
    switch (step.kind) {
    case Step::Input:
      stack.push_back(input(step.input));
      break;
    case Step::Constant:
      stack.push_back(e.splat(step.constant, lanes));
      break;
    case Step::Unary:
      stack.back() = step.apply(e, stack.back(), Value());
      break;
    case Step::Binary: {
      Value b = stack.pop_back_val();
      stack.back() = step.apply(e, stack.back(), b);
    }
    }
  }
  return stack;
}

} // namespace mlir::llm
