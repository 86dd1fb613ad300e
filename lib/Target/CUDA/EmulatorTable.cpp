//===- EmulatorTable.cpp - What emulated kernels and runtime share --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/EmulatorTable.h"

#include "llm/ABI/emulator.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace llm::cuda {

static_assert(offsetof(llm_emulator_api, wait_copies) ==
                  8 + 8 * (static_cast<size_t>(EmulatorFunction::waitCopies) -
                           2),
              "the functions follow two words");
static_assert(static_cast<size_t>(EmulatorFunction::end) ==
              2 + (sizeof(llm_emulator_api) - 8) / 8);

EmulatorTypes::EmulatorTypes(MLIRContext *context)
    : pointer(LLVM::LLVMPointerType::get(context)) {
  Type i32 = IntegerType::get(context, 32);
  SmallVector<Type> fields(static_cast<size_t>(EmulatorFunction::end), pointer);
  fields[0] = fields[1] = i32;
  api = LLVM::LLVMStructType::getLiteral(context, fields);
  thread =
      LLVM::LLVMFunctionType::get(i32, {pointer, pointer, pointer, pointer});
}

LLVM::LLVMFunctionType
EmulatorTypes::signature(EmulatorFunction function) const {
  MLIRContext *context = pointer.getContext();
  Type i32 = IntegerType::get(context, 32);
  Type none = LLVM::LLVMVoidType::get(context);
  auto get = [&](Type result, ArrayRef<Type> arguments) {
    // The thread comes first.
    SmallVector<Type> all{pointer};
    llvm::append_range(all, arguments);
    return LLVM::LLVMFunctionType::get(result, all);
  };
  switch (function) {
  case EmulatorFunction::specialRegister:
    return get(i32, {i32});
  case EmulatorFunction::shared:
    return get(pointer, {});
  case EmulatorFunction::access:
    return get(none, {i32, pointer});
  case EmulatorFunction::barrier:
  case EmulatorFunction::syncWarp:
    return get(none, {i32, i32});
  case EmulatorFunction::shuffle:
    return get(i32, {i32, i32, i32, i32, i32, i32, pointer});
  case EmulatorFunction::reduce:
  case EmulatorFunction::vote:
    return get(i32, {i32, i32, i32, i32});
  case EmulatorFunction::loadMatrix:
    return get(none, {i32, pointer, pointer, i32, i32});
  case EmulatorFunction::multiplyMatrix:
    return get(none, {i32, i32, pointer, pointer, pointer, pointer});
  case EmulatorFunction::copyAsync:
    return get(none, {i32, pointer, pointer, i32, i32});
  case EmulatorFunction::commitCopies:
    return get(none, {});
  case EmulatorFunction::waitCopies:
    return get(none, {i32, i32});
  case EmulatorFunction::end:
    break;
  }
  llvm_unreachable("no function of the table");
}

std::string describeLocation(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return (llvm::sys::path::filename(file.getFilename().getValue()) + ":" +
            Twine(file.getLine()) + ":" + Twine(file.getColumn()))
        .str();
  if (auto name = dyn_cast<NameLoc>(location)) {
    std::string text = name.getName().str();
    if (!isa<UnknownLoc>(name.getChildLoc()))
      text += " in " + describeLocation(name.getChildLoc());
    return text;
  }
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return describeLocation(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    SmallVector<std::string> parts;
    for (Location part : fused.getLocations())
      parts.push_back(describeLocation(part));
    return llvm::join(parts, " and ");
  }
  return "unknown location";
}

/// A constant string; returns the global's name.
static LLVM::GlobalOp appendString(ImplicitLocOpBuilder &b, StringRef name,
                                   StringRef text) {
  std::string bytes = text.str();
  bytes.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  return LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                                LLVM::Linkage::Internal, name,
                                b.getStringAttr(bytes));
}

void appendEmulatorKernel(ModuleOp module, const EmulatorKernel &kernel,
                          LLVM::LLVMFuncOp thread, const EmulatorTypes &types) {
  ImplicitLocOpBuilder b(thread.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  Type i32 = b.getI32Type();
  Type pointer = types.pointer;
  auto integer = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  auto insert = [&](Value aggregate, Value value, ArrayRef<int64_t> position) {
    return LLVM::InsertValueOp::create(b, aggregate, value, position)
        .getResult();
  };

  SmallVector<LLVM::GlobalOp> locations;
  for (auto [i, site] : llvm::enumerate(kernel.sites))
    locations.push_back(appendString(
        b, kernel.name + ".location." + std::to_string(i), site.location));
  LLVM::GlobalOp name = appendString(b, kernel.name + ".name", kernel.name);

  auto siteType = LLVM::LLVMStructType::getLiteral(
      module.getContext(), {pointer, i32, i32, i32, i32});
  auto sitesType = LLVM::LLVMArrayType::get(siteType, kernel.sites.size());
  auto sites = LLVM::GlobalOp::create(b, sitesType, /*isConstant=*/true,
                                      LLVM::Linkage::Internal,
                                      kernel.name + ".sites", Attribute());
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&sites.getInitializer());
    Value array = LLVM::UndefOp::create(b, sitesType);
    for (auto [i, site] : llvm::enumerate(kernel.sites)) {
      auto at = static_cast<int64_t>(i);
      array =
          insert(array, LLVM::AddressOfOp::create(b, locations[i]), {at, 0});
      array = insert(array, integer(site.space), {at, 1});
      array = insert(array, integer(site.access), {at, 2});
      array = insert(array, integer(site.bytes), {at, 3});
      array = insert(array, integer(site.alignment), {at, 4});
    }
    LLVM::ReturnOp::create(b, array);
  }

  auto type = LLVM::LLVMStructType::getLiteral(
      module.getContext(),
      {i32, i32, i32, i32, i32, i32, pointer, pointer, pointer});
  auto descriptor =
      LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                             LLVM::Linkage::Internal, kernel.name, Attribute());
  b.createBlock(&descriptor.getInitializer());
  Value value = LLVM::UndefOp::create(b, type);
  int64_t words[] = {LLM_EMULATOR_ABI_VERSION,
                     kernel.numBuffers,
                     kernel.numSizes,
                     kernel.sharedBytes,
                     static_cast<int64_t>(kernel.sites.size()),
                     kernel.blockThreads};
  for (auto [i, word] : llvm::enumerate(words))
    value = insert(value, integer(word), {static_cast<int64_t>(i)});
  value = insert(value, LLVM::AddressOfOp::create(b, name), {6});
  value = insert(value, LLVM::AddressOfOp::create(b, thread), {7});
  value = insert(value, LLVM::AddressOfOp::create(b, sites), {8});
  LLVM::ReturnOp::create(b, value);
}

} // namespace llm::cuda
