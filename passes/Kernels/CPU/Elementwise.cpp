//===- Elementwise.cpp - Chains of elementwise operators for a CPU --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/RowOutput.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

namespace mlir::llm {

/// A function of one or two vectors of f32.
using Operator = Value (*)(Emitter &e, Value a, Value b);

static Value constant(Emitter &e, Value like, double value) {
  return e.splat(static_cast<float>(value),
                 cast<VectorType>(like.getType()).getDimSize(0));
}

static Value logistic(Emitter &e, Value a) {
  Value one = constant(e, a, 1);
  Value negated = arith::NegFOp::create(e, a);
  return e.div(one, e.add(one, e.exp(negated)));
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
            [](Emitter &e, Value a, Value) { return e.mul(a, logistic(e, a)); })
      .Case("relu", [](Emitter &e, Value a,
                       Value) { return e.max(a, constant(e, a, 0)); })
      .Case("gelu",
            [](Emitter &e, Value a, Value) {
              Value scaled = e.mul(a, constant(e, a, M_SQRT1_2));
              return halfTimes(e, a, math::ErfOp::create(e, scaled));
            })
      .Case("gelu_tanh",
            [](Emitter &e, Value a, Value) {
              // sqrt(2 / pi) * (x + 0.044715 x^3)
              Value cube = e.mul(a, e.mul(a, a));
              Value inner = e.fma(constant(e, a, 0.044715), cube, a);
              Value scaled =
                  e.mul(inner, constant(e, a, M_2_SQRTPI * M_SQRT1_2));
              return halfTimes(e, a, math::TanhOp::create(e, scaled));
            })
      .Case("gelu_sigmoid",
            [](Emitter &e, Value a, Value) {
              return e.mul(a, logistic(e, e.mul(a, constant(e, a, 1.702))));
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

namespace {
/// One instruction of the postfix program.
struct Step {
  enum Kind { Input, Constant, Unary, Binary } kind;
  int64_t input = 0;
  float constant = 0;
  Operator apply = nullptr;
};
} // namespace

static FailureOr<Step> parseStep(rt::KernelOp op, StringRef text) {
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

/// The program of `ops`, the number of inputs and of values that it leaves.
static LogicalResult parseSteps(KernelBuilder &kernel,
                                SmallVectorImpl<Step> &steps,
                                SmallVectorImpl<bool> &broadcast,
                                int64_t &outputs) {
  rt::KernelOp op = kernel.kernel();
  auto ops = op.getParams().getAs<ArrayAttr>("ops");
  auto flags = op.getParams().getAs<ArrayAttr>("broadcast");
  if (!ops)
    return op.emitOpError("needs the parameter 'ops', an array of strings");
  if (flags)
    for (Attribute flag : flags) {
      auto value = dyn_cast<BoolAttr>(flag);
      if (!value)
        return op.emitOpError("'broadcast' is an array of bool");
      broadcast.push_back(value.getValue());
    }
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
    if (step->kind == Step::Input &&
        step->input >= static_cast<int64_t>(broadcast.size())) {
      if (flags || step->input > 64)
        return op.emitOpError("'")
               << text.getValue() << "' is not among the inputs";
      broadcast.resize(step->input + 1, false);
    }
    steps.push_back(*step);
  }
  if (depth == 0)
    return op.emitOpError("'ops' leaves no value");
  outputs = depth;
  return success();
}

/// The values that the program leaves, of `lanes` elements from `d` on of the
/// row at `row`.
static SmallVector<Value> runSteps(Emitter &e, ArrayRef<Step> steps,
                                   ArrayRef<bool> broadcast, Value row, Value d,
                                   int64_t lanes) {
  SmallVector<Value> stack;
  for (const Step &step : steps) {
    switch (step.kind) {
    case Step::Input:
      stack.push_back(e.loadVec(e.buffer(step.input),
                                broadcast[step.input] ? d : e.addi(row, d),
                                lanes));
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

static LogicalResult generateElementwise(KernelBuilder &kernel) {
  FailureOr<int64_t> width = kernel.getInt("width");
  SmallVector<Step> steps;
  SmallVector<bool> broadcast;
  int64_t outputs;
  if (failed(width) || failed(parseSteps(kernel, steps, broadcast, outputs)))
    return failure();
  FailureOr<RowForm> form = RowForm::of(kernel, *width);
  if (failed(form))
    return failure();
  if (outputs > 1 && form->kind != RowForm::Kind::F32)
    return kernel.kernel().emitOpError("has ")
           << outputs << " outputs; only one can be int8 or bf16";
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context);
  SmallVector<Emitter::Buffer> buffers;
  for (bool single : broadcast)
    buffers.push_back({f32, single ? *width : kUnbounded});
  if (outputs == 1)
    form->addBuffers(buffers, context);
  else
    buffers.append(outputs, {f32});
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, buffers, 1);
  RowOutput output(e, *form, broadcast.size());
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    Value row = e.muli(t, *width);
    if (outputs == 1)
      return output.write(t, [&](Value d, int64_t lanes) {
        return runSteps(e, steps, broadcast, row, d, lanes).front();
      });
    e.forRow(*width, [&](Value d, int64_t lanes) {
      for (auto [i, value] :
           llvm::enumerate(runSteps(e, steps, broadcast, row, d, lanes)))
        e.storeVec(value, e.buffer(broadcast.size() + i), e.addi(row, d));
    });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

void populateElementwiseKernels(KernelRegistry &registry) {
  registry.add("cpu", "elementwise", generateElementwise);
}

} // namespace mlir::llm
