//===- WarpLowering.cpp - Operations over several threads -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/KernelLowering.h"
#include "llm/ABI/emulator.h"

using namespace mlir;

namespace llm::cuda {

LogicalResult KernelLowering::lowerBarrier(NVVM::BarrierOp op) {
  if (op.getReductionOp())
    return op.emitError("barriers with a reduction are not emulated");
  if (op.getNumberOfThreads())
    return op.emitError("barriers of a part of the block are not emulated");
  Value id = op.getBarrierId();
  call(EmulatorFunction::barrier, {integer(addSite(op)), id ? id : integer(0)});
  op.erase();
  return success();
}

LogicalResult KernelLowering::lowerShuffle(NVVM::ShflOp op) {
  static_assert(
      static_cast<int>(NVVM::ShflKind::bfly) == LLM_EMULATOR_SHUFFLE_XOR &&
      static_cast<int>(NVVM::ShflKind::idx) == LLM_EMULATOR_SHUFFLE_INDEX);
  Value valid = slot(b.getI32Type(), 1);
  Value word =
      call(EmulatorFunction::shuffle,
           {integer(addSite(op)), integer(static_cast<int32_t>(op.getKind())),
            op.getThreadMask(), asWord(op.getVal()), op.getOffset(),
            op.getMaskAndClamp(), valid});
  Value value = fromWord(word, op.getVal().getType());
  if (auto pair = dyn_cast<LLVM::LLVMStructType>(op.getType())) {
    Value flag = LLVM::TruncOp::create(
        b, b.getI1Type(), LLVM::LoadOp::create(b, b.getI32Type(), valid));
    Value both = LLVM::UndefOp::create(b, pair);
    both = LLVM::InsertValueOp::create(b, both, value, ArrayRef<int64_t>{0});
    value = LLVM::InsertValueOp::create(b, both, flag, ArrayRef<int64_t>{1});
  }
  replace(op, value);
  return success();
}

LogicalResult KernelLowering::lowerReduce(NVVM::ReduxOp op) {
  static_assert(
      static_cast<int>(NVVM::ReduxKind::ADD) == LLM_EMULATOR_REDUCE_ADD + 1 &&
      static_cast<int>(NVVM::ReduxKind::XOR) == LLM_EMULATOR_REDUCE_XOR + 1);
  if (!op.getType().isInteger(32))
    return op.emitError("redux.sync of floats is not emulated");
  replace(op, call(EmulatorFunction::reduce,
                   {integer(addSite(op)),
                    integer(static_cast<int32_t>(op.getKind()) - 1),
                    op.getMaskAndClamp(), op.getVal()}));
  return success();
}

LogicalResult KernelLowering::lowerVote(NVVM::VoteSyncOp op) {
  int32_t kind = 0;
  switch (op.getKind()) {
  case NVVM::VoteSyncKind::any:
    kind = LLM_EMULATOR_VOTE_ANY;
    break;
  case NVVM::VoteSyncKind::all:
    kind = LLM_EMULATOR_VOTE_ALL;
    break;
  case NVVM::VoteSyncKind::uni:
    kind = LLM_EMULATOR_VOTE_UNI;
    break;
  case NVVM::VoteSyncKind::ballot:
    kind = LLM_EMULATOR_VOTE_BALLOT;
    break;
  }
  Value predicate = LLVM::ZExtOp::create(b, b.getI32Type(), op.getPred());
  replace(op, fromWord(call(EmulatorFunction::vote,
                            {integer(addSite(op)), integer(kind), op.getMask(),
                             predicate}),
                       op.getType()));
  return success();
}

LogicalResult KernelLowering::lowerLoadMatrix(NVVM::LdMatrixOp op) {
  auto shape = op.getShape();
  if (shape.getM() != 8 || shape.getN() != 8 ||
      op.getEltType() != NVVM::LdStMatrixEltType::B16)
    return op.emitError("only 8 x 8 matrices of 16 bits are emulated");
  EmulatorSite info;
  info.space = LLM_EMULATOR_SHARED;
  info.access = LLM_EMULATOR_READ;
  info.bytes = info.alignment = 16;
  int32_t count = op.getNum();
  Value out = slot(b.getI32Type(), count);
  call(EmulatorFunction::loadMatrix,
       {integer(addSite(op, std::move(info))), out, op.getPtr(), integer(count),
        integer(op.getLayout() == NVVM::MMALayout::col)});
  replace(op, LLVM::LoadOp::create(b, op.getType(), out));
  return success();
}

LogicalResult KernelLowering::lowerMultiply(NVVM::MmaOp op) {
  auto shape = op.getShape();
  auto type = op.getMultiplicandAPtxType();
  auto result = dyn_cast<LLVM::LLVMStructType>(op.getType());
  bool f32 = result && result.getBody().size() == 4 &&
             llvm::all_of(result.getBody(), [](Type t) { return t.isF32(); }) &&
             op.getOperandC().size() == 4 &&
             op.getOperandC()[0].getType().isF32();
  bool half = type && op.getMultiplicandBPtxType() == type &&
              (*type == NVVM::MMATypes::f16 || *type == NVVM::MMATypes::bf16);
  if (shape.getM() != 16 || shape.getN() != 8 || shape.getK() != 16 || !f32 ||
      !half || op.getLayoutA() != NVVM::MMALayout::row ||
      op.getLayoutB() != NVVM::MMALayout::col)
    return op.emitError("only mma.sync m16n8k16 of f16 or bf16, row times "
                        "column into f32, is emulated");
  Value d = slot(b.getF32Type(), 4);
  call(EmulatorFunction::multiplyMatrix,
       {integer(addSite(op)),
        integer(*type == NVVM::MMATypes::f16 ? LLM_EMULATOR_MATRIX_F16
                                             : LLM_EMULATOR_MATRIX_BF16),
        d, spill(op.getOperandA()), spill(op.getOperandB()),
        spill(op.getOperandC())});
  replace(op, LLVM::LoadOp::create(b, op.getType(), d));
  return success();
}

LogicalResult KernelLowering::lowerCopy(NVVM::CpAsyncOp op) {
  EmulatorSite info;
  info.space = pointees.lookup(op).space;
  info.access = LLM_EMULATOR_READ;
  info.bytes = info.alignment = op.getSize();
  Value size = integer(op.getSize());
  call(EmulatorFunction::copyAsync,
       {integer(addSite(op, std::move(info))), op.getDst(), op.getSrc(), size,
        op.getCpSize() ? op.getCpSize() : size});
  op.erase();
  return success();
}

} // namespace llm::cuda
