//===- ExpandScalarMath.cpp - Functions without a library -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Host/ScalarMath.h"

namespace mlir::llm {
#define GEN_PASS_DEF_EXPANDSCALARMATHPASS
#include "passes/Host/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

using Emit = Value (*)(ImplicitLocOpBuilder &, Value);

static Emit unaryOf(Operation *op) {
  if (isa<math::ExpOp>(op))
    return emitExp;
  if (isa<math::LogOp>(op))
    return emitLog;
  if (isa<math::Log1pOp>(op))
    return emitLog1p;
  if (isa<math::TanhOp>(op))
    return emitTanh;
  if (isa<math::ErfOp>(op))
    return emitErf;
  if (isa<math::SinOp>(op))
    return emitSin;
  if (isa<math::CosOp>(op))
    return emitCos;
  return nullptr;
}

namespace {
struct ExpandScalarMath
    : mlir::llm::impl::ExpandScalarMathPassBase<ExpandScalarMath> {
  void runOnOperation() override {
    SmallVector<Operation *> work;
    getOperation().walk([&](Operation *op) {
      if (op->getNumResults() != 1)
        return;
      Type type = op->getResult(0).getType();
      if ((type.isF32() || type.isF64()) &&
          (unaryOf(op) || isa<math::PowFOp, arith::RemFOp>(op)))
        work.push_back(op);
    });
    for (Operation *op : work) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      Type type = op->getResult(0).getType(), f64 = b.getF64Type();
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(
            type == f64 ? operand
                        : arith::ExtFOp::create(b, f64, operand).getResult());
      Value result;
      if (Emit emit = unaryOf(op))
        result = emit(b, operands[0]);
      else if (isa<math::PowFOp>(op))
        result = emitPow(b, operands[0], operands[1]);
      else
        result = emitRemainder(b, operands[0], operands[1]);
      if (type != f64)
        result = arith::TruncFOp::create(b, type, result);
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    }
  }
};
} // namespace
