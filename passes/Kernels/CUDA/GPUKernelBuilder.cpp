//===- GPUKernelBuilder.cpp - Writing gpu.func kernels --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CUDA/GPUKernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::llm {

GPUKernelBuilder::GPUKernelBuilder(KernelBuilder &kernel,
                                   ArrayRef<KernelBuffer> buffers,
                                   unsigned numSizes, int64_t blockThreads,
                                   int64_t sharedElements, rt::ExprAttr grid)
    : ImplicitLocOpBuilder(kernel.kernel().getLoc(),
                           kernel.codeModule()->getContext()),
      kernelLoc(kernel.kernel().getLoc()) {
  setInsertionPointToEnd(cast<gpu::GPUModuleOp>(kernel.codeModule()).getBody());
  auto space = [&](gpu::AddressSpace space) {
    return gpu::AddressSpaceAttr::get(getContext(), space);
  };
  SmallVector<Type> types;
  for (const KernelBuffer &buffer : buffers)
    types.push_back(MemRefType::get({buffer.elements}, buffer.type,
                                    MemRefLayoutAttrInterface(),
                                    space(gpu::AddressSpace::Global)));
  types.append(numSizes, getI64Type());
  SmallVector<Type, 1> workgroup;
  if (sharedElements)
    workgroup.push_back(MemRefType::get({sharedElements}, getF32Type(),
                                        MemRefLayoutAttrInterface(),
                                        space(gpu::AddressSpace::Workgroup)));
  std::string name = kernel.functionName("");
  func = gpu::GPUFuncOp::create(*this, name, getFunctionType(types, {}),
                                workgroup);
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), getUnitAttr());
  // Becomes .maxntid, which excludes .reqntid.
  func.setKnownBlockSizeAttr(
      getDenseI32ArrayAttr({static_cast<int32_t>(blockThreads), 1, 1}));
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), getUnitAttr());
    func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                    getI64IntegerAttr(16));
    if (buffer.readOnly)
      func.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                      getUnitAttr());
  }
  // Workgroup memory has the alignment of its elements otherwise.
  if (sharedElements)
    func.setWorkgroupAttributionAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                                     getI64IntegerAttr(16));
  setInsertionPointToStart(&func.getBody().front());
  setInsertionPoint(gpu::ReturnOp::create(*this));

  kernel.addVariant(name).setBlockThreads(blockThreads);
  kernel.setGrid(grid);
}

Value GPUKernelBuilder::size(unsigned i) {
  unsigned numBuffers = 0;
  for (Type type : func.getArgumentTypes())
    numBuffers += isa<MemRefType>(type);
  return arith::IndexCastOp::create(*this, getIndexType(),
                                    func.getArgument(numBuffers + i));
}

void GPUKernelBuilder::at(StringRef what) {
  setLoc(NameLoc::get(getStringAttr(what), kernelLoc));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value GPUKernelBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}
Value GPUKernelBuilder::f32(float value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}
Value GPUKernelBuilder::add(Value a, Value b) {
  return arith::AddIOp::create(*this, a, b);
}
Value GPUKernelBuilder::add(Value a, int64_t b) {
  return b ? add(a, index(b)) : a;
}
Value GPUKernelBuilder::mul(Value a, int64_t b) {
  return b == 1 ? a : arith::MulIOp::create(*this, a, index(b)).getResult();
}
Value GPUKernelBuilder::div(Value a, int64_t b) {
  return arith::DivUIOp::create(*this, a, index(b));
}
Value GPUKernelBuilder::rem(Value a, int64_t b) {
  return arith::RemUIOp::create(*this, a, index(b));
}
Value GPUKernelBuilder::less(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ult, a, b);
}
Value GPUKernelBuilder::less(Value a, int64_t b) { return less(a, index(b)); }
Value GPUKernelBuilder::equal(Value a, int64_t b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, a, index(b));
}
Value GPUKernelBuilder::blockId() {
  return gpu::BlockIdOp::create(*this, gpu::Dimension::x);
}
Value GPUKernelBuilder::threadId() {
  return gpu::ThreadIdOp::create(*this, gpu::Dimension::x);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value GPUKernelBuilder::load(Value buffer, Value at) {
  return memref::LoadOp::create(*this, buffer, at);
}
void GPUKernelBuilder::store(Value value, Value buffer, Value at) {
  memref::StoreOp::create(*this, value, buffer, at);
}
Value GPUKernelBuilder::load4(Value buffer, Value at) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  return vector::LoadOp::create(*this, VectorType::get({4}, element), buffer,
                                ValueRange{at}, /*nontemporal=*/false,
                                llvm::MaybeAlign(16));
}
void GPUKernelBuilder::store4(Value value, Value buffer, Value at) {
  vector::StoreOp::create(*this, value, buffer, ValueRange{at},
                          /*nontemporal=*/false, llvm::MaybeAlign(16));
}
Value GPUKernelBuilder::element(Value vector, int64_t i) {
  return vector::ExtractOp::create(*this, vector, i);
}
Value GPUKernelBuilder::vector4(ArrayRef<Value> elements) {
  return vector::FromElementsOp::create(
      *this, VectorType::get({4}, elements[0].getType()), elements);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value GPUKernelBuilder::fma(Value a, Value b, Value c) {
  // math.fma would become a libdevice call.
  if (isa<VectorType>(a.getType()))
    return vector::FMAOp::create(*this, a, b, c);
  return LLVM::FMAOp::create(*this, a, b, c);
}
Value GPUKernelBuilder::sqrt(Value value) {
  // math.sqrt and llvm.intr.sqrt would become libdevice calls.
  return LLVM::CallIntrinsicOp::create(*this, getF32Type(),
                                       getStringAttr("llvm.sqrt.f32"), value)
      .getResult(0);
}
Value GPUKernelBuilder::shuffleXor(Value value, int64_t mask) {
  return gpu::ShuffleOp::create(*this, value, mask, kWarpSize,
                                gpu::ShuffleMode::XOR)
      .getShuffleResult();
}
Value GPUKernelBuilder::warpSum(Value value) {
  for (int64_t mask = kWarpSize / 2; mask; mask /= 2)
    value = arith::AddFOp::create(*this, value, shuffleXor(value, mask));
  return value;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void GPUKernelBuilder::ifThen(Value condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPoint(op.thenYield());
  body();
}

Value GPUKernelBuilder::ifElse(Value condition, function_ref<Value()> thenValue,
                               function_ref<Value()> elseValue) {
  auto region = [&](function_ref<Value()> value) {
    return [&, value](OpBuilder &inner, Location) {
      InsertionGuard guard(*this);
      setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
      scf::YieldOp::create(*this, value());
    };
  };
  return scf::IfOp::create(*this, condition, region(thenValue),
                           region(elseValue))
      .getResult(0);
}

SmallVector<Value> GPUKernelBuilder::loop(
    Value from, int64_t to, int64_t step, ArrayRef<Value> init,
    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto op = scf::ForOp::create(*this, from, index(to), index(step), init);
  InsertionGuard guard(*this);
  Block *block = op.getBody();
  if (init.empty()) {
    setInsertionPoint(block->getTerminator());
    body(op.getInductionVar(), {});
    return {};
  }
  setInsertionPointToEnd(block);
  SmallVector<Value> next = body(op.getInductionVar(), op.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return SmallVector<Value>(op.getResults());
}

} // namespace mlir::llm
