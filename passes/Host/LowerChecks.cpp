//===- LowerChecks.cpp - Run-time checks as calls -------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::llm {
#define GEN_PASS_DEF_LOWERCHECKSPASS
#include "passes/Host/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {
struct LowerChecks : mlir::llm::impl::LowerChecksPassBase<LowerChecks> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Operation *> work;
    module.walk([&](Operation *op) {
      auto alloc = dyn_cast<memref::AllocOp>(op);
      if (isa<cf::AssertOp>(op) || (alloc && !alloc.getDynamicSizes().empty()))
        work.push_back(op);
    });
    for (Operation *op : work) {
      OpBuilder b(op);
      if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
        check(b, alloc.getLoc(), sizeIsSane(b, alloc),
              "a tensor of the run has a negative or absurd size");
        continue;
      }
      auto assertion = cast<cf::AssertOp>(op);
      check(b, op->getLoc(), assertion.getArg(), assertion.getMsg());
      op->erase();
    }
  }

private:
  Value sizeIsSane(OpBuilder &b, memref::AllocOp alloc);
  void check(OpBuilder &b, Location loc, Value ok, StringRef message);
  LLVM::GlobalOp messageOf(StringRef message);

  llvm::StringMap<LLVM::GlobalOp> messages;
};
} // namespace

/// No factor is negative and the bytes, counted in f64, are below 2^47.
Value LowerChecks::sizeIsSane(OpBuilder &b, memref::AllocOp alloc) {
  Location loc = alloc.getLoc();
  Type f64 = b.getF64Type();
  MemRefType type = alloc.getType();
  double bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t extent : type.getShape())
    if (!ShapedType::isDynamic(extent))
      bytes *= static_cast<double>(extent);
  auto real = [&](double value) {
    return arith::ConstantOp::create(b, loc, b.getF64FloatAttr(value));
  };
  Value total = real(bytes);
  Value ok = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  Value zero = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
  for (Value size : alloc.getDynamicSizes()) {
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), size);
    Value natural =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, wide, zero);
    ok = arith::AndIOp::create(b, loc, ok, natural);
    total = arith::MulFOp::create(b, loc, total,
                                  arith::SIToFPOp::create(b, loc, f64, wide));
  }
  Value fits = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, total,
                                     real(0x1p47));
  return arith::AndIOp::create(b, loc, ok, fits);
}

LLVM::GlobalOp LowerChecks::messageOf(StringRef message) {
  LLVM::GlobalOp &global = messages[message];
  if (global)
    return global;
  ModuleOp module = getOperation();
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  std::string text = message.str();
  text.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), text.size());
  global = LLVM::GlobalOp::create(
      b, module.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
      ("llm_message_" + Twine(messages.size())).str(), b.getStringAttr(text));
  return global;
}

void LowerChecks::check(OpBuilder &b, Location loc, Value ok,
                        StringRef message) {
  ModuleOp module = getOperation();
  auto ptr = LLVM::LLVMPointerType::get(&getContext());
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(kCheckFunction);
  if (!function) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    function = LLVM::LLVMFuncOp::create(
        top, module.getLoc(), kCheckFunction,
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()),
                                    {b.getI1Type(), ptr}));
  }
  Value text = LLVM::AddressOfOp::create(b, loc, messageOf(message));
  LLVM::CallOp::create(b, loc, function, ValueRange{ok, text});
}
