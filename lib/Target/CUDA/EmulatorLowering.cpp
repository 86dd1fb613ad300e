//===- EmulatorLowering.cpp - GPU kernels for the emulator ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/EmulatorLowering.h"

#include "lib/Target/CUDA/KernelLowering.h"
#include "lib/Target/CUDA/LowerGPUModule.h"
#include "llm/ABI/emulator.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace llm::cuda {

/// Shared variables that an instruction may need aligned further than their
/// elements are; the alignment that the runtime gives shared memory.
static constexpr uint64_t kSharedAlignment = 1024;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

Pointee KernelLowering::trace(Value pointer) const {
  while (Operation *op = pointer.getDefiningOp()) {
    if (isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp, LLVM::BitcastOp>(op))
      pointer = op->getOperand(0);
    else if (isa<LLVM::AllocaOp>(op))
      return {LLM_EMULATOR_ANYWHERE, true};
    else if (isa<LLVM::AddressOfOp>(op))
      return {LLM_EMULATOR_SHARED, false};
    else
      return {LLM_EMULATOR_ANYWHERE, false};
  }
  auto it = operands.find(pointer);
  return {it == operands.end() ? LLM_EMULATOR_ANYWHERE : it->second, false};
}

uint32_t KernelLowering::addSite(Operation *op, EmulatorSite info) {
  info.location = describeLocation(op->getLoc());
  description.sites.push_back(std::move(info));
  return description.sites.size() - 1;
}

Value KernelLowering::call(EmulatorFunction function, ValueRange arguments) {
  auto index = static_cast<int32_t>(function);
  Value field = LLVM::GEPOp::create(b, types.pointer, types.api, api,
                                    ArrayRef<LLVM::GEPArg>{0, index});
  Value callee = LLVM::LoadOp::create(b, types.pointer, field, /*alignment=*/8,
                                      /*isVolatile=*/false,
                                      /*isNonTemporal=*/false,
                                      /*isInvariant=*/true);
  SmallVector<Value> operands{callee, thread};
  llvm::append_range(operands, arguments);
  auto op = LLVM::CallOp::create(b, types.signature(function), operands);
  return op->getNumResults() ? op->getResult(0) : Value();
}

/// Room for `count` values of `type` on the thread's stack.
Value KernelLowering::slot(Type type, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&func.getBody().front());
  return LLVM::AllocaOp::create(b, types.pointer, type, integer(count),
                                /*alignment=*/16);
}

Value KernelLowering::spill(ValueRange values) {
  Type type = values[0].getType();
  Value base = slot(type, values.size());
  for (auto [i, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(
        b, value,
        LLVM::GEPOp::create(b, types.pointer, type, base,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)}));
  return base;
}

Value KernelLowering::asWord(Value value) {
  if (value.getType().isInteger(32))
    return value;
  return LLVM::BitcastOp::create(b, b.getI32Type(), value);
}

Value KernelLowering::fromWord(Value word, Type type) {
  if (type == word.getType())
    return word;
  if (type.isInteger(1))
    return LLVM::TruncOp::create(b, type, word);
  return LLVM::BitcastOp::create(b, type, word);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void KernelLowering::checkAccess(Operation *op, Value pointer, Type type,
                                 int32_t access,
                                 std::optional<uint64_t> alignment) {
  Pointee pointee = pointees.lookup(op);
  if (pointee.isPrivate)
    return;
  DataLayout layout = DataLayout::closest(op);
  EmulatorSite info;
  info.space = pointee.space;
  info.access = access;
  info.bytes = layout.getTypeSize(type);
  info.alignment = alignment.value_or(layout.getTypeABIAlignment(type));
  call(EmulatorFunction::access,
       {integer(addSite(op, std::move(info))), pointer});
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// -1 for a register that the emulator does not have.
static int32_t lookupRegister(StringRef name) {
  return llvm::StringSwitch<int32_t>(name)
      .Case("tid.x", LLM_EMULATOR_THREAD_X)
      .Case("tid.y", LLM_EMULATOR_THREAD_Y)
      .Case("tid.z", LLM_EMULATOR_THREAD_Z)
      .Case("ctaid.x", LLM_EMULATOR_BLOCK_X)
      .Case("ctaid.y", LLM_EMULATOR_BLOCK_Y)
      .Case("ctaid.z", LLM_EMULATOR_BLOCK_Z)
      .Case("ntid.x", LLM_EMULATOR_BLOCK_SIZE_X)
      .Case("ntid.y", LLM_EMULATOR_BLOCK_SIZE_Y)
      .Case("ntid.z", LLM_EMULATOR_BLOCK_SIZE_Z)
      .Case("nctaid.x", LLM_EMULATOR_GRID_SIZE_X)
      .Case("nctaid.y", LLM_EMULATOR_GRID_SIZE_Y)
      .Case("nctaid.z", LLM_EMULATOR_GRID_SIZE_Z)
      .Case("laneid", LLM_EMULATOR_LANE)
      .Case("warpid", LLM_EMULATOR_WARP)
      .Case("warpsize", LLM_EMULATOR_WARP_SIZE)
      .Default(-1);
}

LogicalResult KernelLowering::lower(Operation *op) {
  b.setLoc(op->getLoc());
  b.setInsertionPoint(op);
  StringRef name = op->getName().getStringRef();
  if (name.consume_front("nvvm.read.ptx.sreg.")) {
    int32_t which = lookupRegister(name);
    if (which < 0)
      return op->emitError("the register ") << name << " is not emulated";
    replace(op, call(EmulatorFunction::specialRegister, {integer(which)}));
    return success();
  }
  if (isa<NVVM::Barrier0Op>(op)) {
    call(EmulatorFunction::barrier, {integer(addSite(op)), integer(0)});
    op->erase();
    return success();
  }
  if (auto barrier = dyn_cast<NVVM::BarrierOp>(op))
    return lowerBarrier(barrier);
  if (auto sync = dyn_cast<NVVM::SyncWarpOp>(op)) {
    call(EmulatorFunction::syncWarp, {integer(addSite(op)), sync.getMask()});
    op->erase();
    return success();
  }
  if (auto shuffle = dyn_cast<NVVM::ShflOp>(op))
    return lowerShuffle(shuffle);
  if (auto reduce = dyn_cast<NVVM::ReduxOp>(op))
    return lowerReduce(reduce);
  if (auto vote = dyn_cast<NVVM::VoteSyncOp>(op))
    return lowerVote(vote);
  if (auto matrix = dyn_cast<NVVM::LdMatrixOp>(op))
    return lowerLoadMatrix(matrix);
  if (auto multiply = dyn_cast<NVVM::MmaOp>(op))
    return lowerMultiply(multiply);
  if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op))
    return lowerCopy(copy);
  if (isa<NVVM::CpAsyncCommitGroupOp>(op)) {
    call(EmulatorFunction::commitCopies, {});
    op->erase();
    return success();
  }
  if (auto wait = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op)) {
    call(EmulatorFunction::waitCopies,
         {integer(addSite(op)), integer(wait.getN())});
    op->erase();
    return success();
  }
  if (isa<NVVM::NVVMDialect>(op->getDialect()))
    return op->emitError("'") << op->getName() << "' is not emulated";

  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    checkAccess(op, load.getAddr(), load.getType(), LLM_EMULATOR_READ,
                load.getAlignment());
  } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
    checkAccess(op, store.getAddr(), store.getValue().getType(),
                LLM_EMULATOR_WRITE, store.getAlignment());
  } else if (auto rmw = dyn_cast<LLVM::AtomicRMWOp>(op)) {
    checkAccess(op, rmw.getPtr(), rmw.getType(),
                LLM_EMULATOR_READ | LLM_EMULATOR_WRITE | LLM_EMULATOR_ATOMIC,
                rmw.getAlignment());
  } else if (auto exchange = dyn_cast<LLVM::AtomicCmpXchgOp>(op)) {
    checkAccess(op, exchange.getPtr(), exchange.getVal().getType(),
                LLM_EMULATOR_READ | LLM_EMULATOR_WRITE | LLM_EMULATOR_ATOMIC,
                exchange.getAlignment());
  } else if (auto gep = dyn_cast<LLVM::GEPOp>(op)) {
    // A wrong index is to reach the check as it is.
    gep.setNoWrapFlags(LLVM::GEPNoWrapFlags::none);
  } else if (auto cast = dyn_cast<LLVM::AddrSpaceCastOp>(op)) {
    replace(op, cast.getArg());
  } else if (auto address = dyn_cast<LLVM::AddressOfOp>(op)) {
    auto offset = sharedOffsets.find(address.getGlobalName());
    if (offset == sharedOffsets.end())
      return op->emitError("only variables in shared memory are emulated");
    Value base = call(EmulatorFunction::shared, {});
    replace(op, LLVM::GEPOp::create(b, types.pointer, b.getI8Type(), base,
                                    ArrayRef<LLVM::GEPArg>{
                                        static_cast<int32_t>(offset->second)}));
  } else if (isa<LLVM::ReturnOp>(op)) {
    LLVM::ReturnOp::create(b, integer(0));
    op->erase();
  } else if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op)) {
    if (intrinsic.getIntrin().starts_with("llvm.nvvm."))
      return op->emitError("the intrinsic ")
             << intrinsic.getIntrin() << " is not emulated";
  } else if (isa<LLVM::CallOp, LLVM::InvokeOp, LLVM::InlineAsmOp,
                 LLVM::MemcpyOp, LLVM::MemcpyInlineOp, LLVM::MemmoveOp,
                 LLVM::MemsetOp>(op)) {
    return op->emitError("'") << op->getName() << "' is not emulated";
  }
  return success();
}

LogicalResult KernelLowering::run() {
  description.name = func.getName().str();
  if (!isa<LLVM::LLVMVoidType>(func.getFunctionType().getReturnType()))
    return func.emitError("a kernel returns nothing");
  if (auto block = func->getAttrOfType<DenseI32ArrayAttr>(
          NVVM::NVVMDialect::getMaxntidAttrName()))
    description.blockThreads =
        std::accumulate(block.asArrayRef().begin(), block.asArrayRef().end(),
                        int64_t(1), std::multiplies<>());

  Block &entry = func.getBody().front();
  SmallVector<Value> arguments(entry.getArguments());
  for (Value argument : arguments)
    if (isa<LLVM::LLVMPointerType>(argument.getType()))
      operands[argument] = description.numBuffers++;
    else if (argument.getType().isInteger(64))
      ++description.numSizes;
    else
      return func.emitError("an emulated kernel takes buffers and i64 sizes, "
                            "not ")
             << argument.getType();

  SmallVector<Operation *> operations;
  func.walk([&](Operation *op) {
    if (op == func)
      return;
    operations.push_back(op);
    if (auto load = dyn_cast<LLVM::LoadOp>(op))
      pointees[op] = trace(load.getAddr());
    else if (auto store = dyn_cast<LLVM::StoreOp>(op))
      pointees[op] = trace(store.getAddr());
    else if (auto rmw = dyn_cast<LLVM::AtomicRMWOp>(op))
      pointees[op] = trace(rmw.getPtr());
    else if (auto exchange = dyn_cast<LLVM::AtomicCmpXchgOp>(op))
      pointees[op] = trace(exchange.getPtr());
    else if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op))
      pointees[op] = trace(copy.getSrc());
  });

  // One address space, and the signature of llm_emulator_fn.
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](LLVM::LLVMPointerType) -> Type { return types.pointer; });
  replacer.recursivelyReplaceElementsIn(func, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  for (unsigned i = 0; i < 4; ++i)
    entry.insertArgument(i, types.pointer, func.getLoc());
  api = entry.getArgument(0);
  thread = entry.getArgument(1);
  b.setInsertionPointToStart(&entry);
  int32_t buffer = 0, size = 0;
  for (Value argument : arguments) {
    bool isBuffer = isa<LLVM::LLVMPointerType>(argument.getType());
    Value field = LLVM::GEPOp::create(
        b, types.pointer, argument.getType(),
        entry.getArgument(isBuffer ? 2 : 3),
        ArrayRef<LLVM::GEPArg>{isBuffer ? buffer++ : size++});
    argument.replaceAllUsesWith(
        LLVM::LoadOp::create(b, argument.getType(), field));
  }
  entry.eraseArguments(4, arguments.size());

  for (Operation *op : operations)
    if (failed(lower(op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// Gives each shared variable that `func` uses an offset; returns what they
/// take together.
static FailureOr<uint64_t> layOutShared(LLVM::LLVMFuncOp func,
                                        llvm::StringMap<uint64_t> &offsets) {
  auto module = func->getParentOfType<gpu::GPUModuleOp>();
  DataLayout layout(module->getParentOfType<ModuleOp>());
  uint64_t bytes = 0;
  WalkResult result = func.walk([&](LLVM::AddressOfOp address) {
    auto global = module.lookupSymbol<LLVM::GlobalOp>(address.getGlobalName());
    if (!global || offsets.contains(global.getName()))
      return WalkResult::advance();
    uint64_t alignment = std::max(global.getAlignment().value_or(1),
                                  layout.getTypeABIAlignment(global.getType()));
    bytes = llvm::alignTo(bytes, alignment);
    uint64_t end = bytes + layout.getTypeSize(global.getType()).getFixedValue();
    if (global.getAddrSpace() !=
            static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared) ||
        alignment > kSharedAlignment ||
        end > std::numeric_limits<int32_t>::max()) {
      global.emitError("only variables in shared memory, aligned to at most ")
          << kSharedAlignment << " bytes, are emulated";
      return WalkResult::interrupt();
    }
    offsets[global.getName()] = bytes;
    bytes = end;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return bytes;
}

FailureOr<OwningOpRef<ModuleOp>> lowerToEmulator(gpu::GPUModuleOp module) {
  OwningOpRef<ModuleOp> isolated = isolateGPUModule(module);
  gpu::GPUModuleOp lowered = getGPUModule(*isolated);
  if (failed(lowerGPUModule(lowered)))
    return failure();

  OwningOpRef<ModuleOp> result(ModuleOp::create(module.getLoc()));
  EmulatorTypes types(module.getContext());
  for (auto func : lowered.getOps<LLVM::LLVMFuncOp>()) {
    if (!func->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      return func.emitError("functions beside kernels are not emulated");
    llvm::StringMap<uint64_t> offsets;
    FailureOr<uint64_t> sharedBytes = layOutShared(func, offsets);
    if (failed(sharedBytes))
      return failure();
    KernelLowering lowering(func, types, offsets);
    if (failed(lowering.run()))
      return failure();
    EmulatorKernel &kernel = lowering.description;
    kernel.sharedBytes = *sharedBytes;
    OpBuilder builder = OpBuilder::atBlockEnd(result->getBody());
    auto threadFunc = LLVM::LLVMFuncOp::create(
        builder, func.getLoc(), kernel.name + ".thread", types.thread,
        LLVM::Linkage::Internal);
    threadFunc.getBody().takeBody(func.getBody());
    appendEmulatorKernel(*result, kernel, threadFunc, types);
  }
  if (failed(verify(*result)))
    return failure();
  return result;
}

} // namespace llm::cuda
