//===- LowerHostFunction.cpp - The signature of llm_host_fn ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Host/Passes.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/Conversion/LLMToLinalg/Passes.h"

namespace mlir::llm {
#define GEN_PASS_DEF_LOWERHOSTFUNCTIONPASS
#include "passes/Host/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// The ElementType of include/llm/ABI/manifest.proto.
static int32_t elementCode(Type type) {
  if (type.isF32())
    return 1;
  if (type.isF16())
    return 2;
  if (type.isBF16())
    return 3;
  if (type.isF64())
    return 4;
  if (isa<Float8E4M3FNType>(type))
    return 16;
  if (isa<Float8E4M3FNUZType>(type))
    return 17;
  if (isa<Float8E5M2Type>(type))
    return 18;
  if (isa<Float8E5M2FNUZType>(type))
    return 19;
  if (isa<Float4E2M1FNType>(type))
    return 20;
  if (isa<Float8E8M0FNUType>(type))
    return 21;
  bool isUnsigned = type.isUnsignedInteger();
  if (isa<IntegerType>(type))
    switch (type.getIntOrFloatBitWidth()) {
    case 1:
      return 13;
    case 2:
      return isUnsigned ? 23 : 22;
    case 4:
      return isUnsigned ? 15 : 14;
    case 8:
      return isUnsigned ? 6 : 5;
    case 16:
      return isUnsigned ? 8 : 7;
    case 32:
      return isUnsigned ? 10 : 9;
    case 64:
      return isUnsigned ? 12 : 11;
    default:
      break;
    }
  return 0;
}

static bool isPacked(Type type) {
  return !type.isInteger(1) && type.getIntOrFloatBitWidth() < 8;
}

namespace {
/// Builds the host function around the body of a lowered function.
class Wrapper {
public:
  Wrapper(LLVM::LLVMFuncOp body, FunctionType logical, ArrayRef<Type> constants)
      : body(body), logical(logical), constants(constants),
        b(body.getLoc(), body.getContext()) {}

  LogicalResult run();

private:
  Value number(int64_t value) {
    return LLVM::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  Value loadAt(Type type, Value base, int64_t bytes) {
    return LLVM::LoadOp::create(b, type, offset(base, number(bytes)));
  }
  Value offset(Value base, Value bytes) {
    return LLVM::GEPOp::create(b, ptr, b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{bytes});
  }
  void storeAt(Value value, Value base, int64_t bytes) {
    LLVM::StoreOp::create(b, value, offset(base, number(bytes)));
  }
  Value equal(Value x, Value y) {
    return LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, x, y);
  }
  Value text(StringRef message);
  /// Splits the block: what follows runs only where `ok` holds.
  void require(Value ok, Value message);
  Value allocate(Value bytes);
  void release(Value pointer);
  void pushDescriptor(SmallVectorImpl<Value> &arguments, Value data,
                      ArrayRef<Value> sizes);
  void readInput(SmallVectorImpl<Value> &arguments, unsigned index);
  void readConstant(SmallVectorImpl<Value> &arguments, unsigned index);
  void writeOutputs(LLVM::ReturnOp op);
  Value copyOf(Value data, Value bytes);
  LogicalResult rewriteCalls();

  LLVM::LLVMFuncOp body;
  FunctionType logical;
  ArrayRef<Type> constants;
  ImplicitLocOpBuilder b;
  LLVM::LLVMFuncOp function;
  Type ptr, i64, i32;
  Block *failure = nullptr;
  Value context, allocateFn, releaseFn, failFn;
  unsigned messages = 0;
};
} // namespace

Value Wrapper::text(StringRef message) {
  auto module = function->getParentOfType<ModuleOp>();
  std::string bytes = message.str();
  bytes.push_back('\0');
  std::string name;
  do
    name = "llm_text_" + std::to_string(messages++);
  while (module.lookupSymbol(name));
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  auto global = LLVM::GlobalOp::create(
      top, body.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, name,
      b.getStringAttr(bytes));
  return LLVM::AddressOfOp::create(b, global);
}

void Wrapper::require(Value ok, Value message) {
  Block *block = b.getInsertionBlock();
  Block *next = block->splitBlock(b.getInsertionPoint());
  b.setInsertionPointToEnd(block);
  LLVM::CondBrOp::create(b, ok, next, ValueRange(), this->failure,
                         ValueRange(message));
  b.setInsertionPointToStart(next);
}

Value Wrapper::allocate(Value bytes) {
  // A tensor without elements still needs an address.
  Value least = LLVM::UMaxOp::create(b, bytes, number(64));
  auto type = LLVM::LLVMFunctionType::get(ptr, {ptr, i64});
  Value pointer =
      LLVM::CallOp::create(b, type, ValueRange{allocateFn, context, least})
          .getResult();
  Value null = LLVM::ZeroOp::create(b, ptr);
  Value ok = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, pointer, null);
  require(ok, text("the memory limit is reached"));
  return pointer;
}

void Wrapper::release(Value pointer) {
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(b.getContext()), {ptr, ptr});
  LLVM::CallOp::create(b, type, ValueRange{releaseFn, context, pointer});
}

void Wrapper::pushDescriptor(SmallVectorImpl<Value> &arguments, Value data,
                             ArrayRef<Value> sizes) {
  arguments.append({data, data, number(0)});
  llvm::append_range(arguments, sizes);
  SmallVector<Value> strides(sizes.size());
  Value stride = number(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride = LLVM::MulOp::create(b, stride, sizes[i]);
  }
  llvm::append_range(arguments, strides);
}

/// llm_tensor is {data, rank, dims, element_type}: 32 bytes.
static constexpr int64_t kTensorBytes = 32;

void Wrapper::readInput(SmallVectorImpl<Value> &arguments, unsigned index) {
  auto type = cast<RankedTensorType>(logical.getInput(index));
  Value tensor = offset(function.getArgument(1), number(kTensorBytes * index));
  std::string name = "input " + std::to_string(index);
  if (auto attr = body->getAttrOfType<ArrayAttr>("llm.input_names"))
    name = "input '" + cast<StringAttr>(attr[index]).getValue().str() + "'";
  std::string expected;
  llvm::raw_string_ostream(expected) << type;
  Value message = text(name + " is no " + expected);
  require(equal(loadAt(i64, tensor, 8), number(type.getRank())), message);
  Value code = LLVM::ConstantOp::create(
      b, b.getI32IntegerAttr(elementCode(type.getElementType())));
  require(equal(loadAt(i32, tensor, 24), code), message);
  Value dims = loadAt(ptr, tensor, 16), data = loadAt(ptr, tensor, 0);
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    Value size = loadAt(i64, dims, 8 * i);
    if (type.isDynamicDim(i)) {
      require(
          LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::sge, size, number(0)),
          message);
    } else {
      require(equal(size, number(type.getDimSize(i))), message);
      size = number(type.getDimSize(i));
    }
    sizes.push_back(size);
  }
  if (!isPacked(type.getElementType())) {
    pushDescriptor(arguments, data, sizes);
    return;
  }
  Value bits = number(type.getElementTypeBitWidth());
  for (Value size : sizes)
    bits = LLVM::MulOp::create(b, bits, size);
  Value bytes = LLVM::UDivOp::create(b, LLVM::AddOp::create(b, bits, number(7)),
                                     number(8));
  pushDescriptor(arguments, data, bytes);
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      arguments.push_back(sizes[i]);
}

void Wrapper::readConstant(SmallVectorImpl<Value> &arguments, unsigned index) {
  auto type = cast<RankedTensorType>(constants[index]);
  Value data = loadAt(ptr, function.getArgument(3), 8 * index);
  SmallVector<Value> sizes;
  for (int64_t extent : type.getShape())
    sizes.push_back(number(extent));
  pushDescriptor(arguments, data, sizes);
}

/// A copy of `bytes` bytes at `data`, owned by the host.
Value Wrapper::copyOf(Value data, Value bytes) {
  Value to = allocate(bytes);
  LLVM::MemcpyOp::create(b, to, data, bytes, /*isVolatile=*/false);
  return to;
}

void Wrapper::writeOutputs(LLVM::ReturnOp op) {
  b.setInsertionPoint(op);
  SmallVector<Value> results;
  Type whole = op.getNumOperands() ? op.getOperand(0).getType() : Type();
  unsigned count = 0;
  for (Type type : logical.getResults()) {
    auto tensor = cast<RankedTensorType>(type);
    count += isPacked(tensor.getElementType()) ? 1 + tensor.getRank() : 1;
  }
  for (unsigned i = 0; i < count; ++i)
    results.push_back(
        count == 1 && whole
            ? op.getOperand(0)
            : LLVM::ExtractValueOp::create(b, op.getOperand(0), i).getResult());
  auto field = [&](Value descriptor, ArrayRef<int64_t> position) {
    return LLVM::ExtractValueOp::create(b, descriptor, position).getResult();
  };
  SmallVector<Value> taken;
  unsigned next = 0;
  for (auto [index, each] : llvm::enumerate(logical.getResults())) {
    auto type = cast<RankedTensorType>(each);
    Value descriptor = results[next++];
    bool packed = isPacked(type.getElementType());
    SmallVector<Value> sizes;
    for (int64_t i = 0; i < type.getRank(); ++i)
      sizes.push_back(packed ? results[next++] : field(descriptor, {3, i}));
    Value bytes =
        packed ? field(descriptor, {3, 0})
               : number(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
    if (!packed)
      for (Value size : sizes)
        bytes = LLVM::MulOp::create(b, bytes, size);
    // The same buffer may be returned twice; the host releases each output.
    Value data = field(descriptor, {1});
    Value fresh = LLVM::ConstantOp::create(b, b.getBoolAttr(true));
    for (Value other : taken)
      fresh = LLVM::AndOp::create(
          b, fresh,
          LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, data, other));
    if (!taken.empty()) {
      Block *before = b.getInsertionBlock();
      Block *after = before->splitBlock(b.getInsertionPoint());
      after->addArgument(ptr, b.getLoc());
      Block *copy = b.createBlock(after);
      Value copied = copyOf(data, bytes);
      LLVM::BrOp::create(b, copied, after);
      b.setInsertionPointToEnd(before);
      LLVM::CondBrOp::create(b, fresh, after, data, copy, ValueRange());
      b.setInsertionPointToStart(after);
      taken.push_back(data);
      data = after->getArgument(0);
    } else {
      taken.push_back(data);
    }
    Value dims = allocate(number(8 * std::max<int64_t>(type.getRank(), 1)));
    for (auto [i, size] : llvm::enumerate(sizes))
      storeAt(size, dims, 8 * i);
    Value tensor =
        offset(function.getArgument(2), number(kTensorBytes * index));
    storeAt(data, tensor, 0);
    storeAt(number(type.getRank()), tensor, 8);
    storeAt(dims, tensor, 16);
    storeAt(LLVM::ConstantOp::create(
                b, b.getI32IntegerAttr(elementCode(type.getElementType()))),
            tensor, 24);
  }
  Value zero = LLVM::ConstantOp::create(b, b.getI32IntegerAttr(0));
  LLVM::ReturnOp::create(b, zero);
  op.erase();
}

LogicalResult Wrapper::rewriteCalls() {
  SmallVector<LLVM::CallOp> calls;
  function.walk([&](LLVM::CallOp call) {
    if (call.getCallee())
      calls.push_back(call);
  });
  for (LLVM::CallOp call : calls) {
    StringRef callee = *call.getCallee();
    b.setInsertionPoint(call);
    if (callee == kCheckFunction) {
      Value ok = call.getArgOperands()[0], message = call.getArgOperands()[1];
      b.setInsertionPointAfter(call);
      call.erase();
      require(ok, message);
    } else if (callee == "_mlir_memref_to_llvm_aligned_alloc" ||
               callee == "_mlir_memref_to_llvm_alloc") {
      Value pointer = allocate(call.getArgOperands().back());
      call.getResult().replaceAllUsesWith(pointer);
      call.erase();
    } else if (callee == "_mlir_memref_to_llvm_free") {
      release(call.getArgOperands()[0]);
      call.erase();
    } else if (auto other = function->getParentOfType<ModuleOp>()
                                .lookupSymbol<LLVM::LLVMFuncOp>(callee);
               !other || other.isExternal()) {
      return call.emitError("the generic path cannot call @") << callee;
    }
  }
  return success();
}

LogicalResult Wrapper::run() {
  ptr = LLVM::LLVMPointerType::get(b.getContext());
  i64 = b.getI64Type();
  i32 = b.getI32Type();
  b.setInsertionPoint(body);
  std::string name = body.getSymName().str();
  body.setSymName(name + ".body");
  function = LLVM::LLVMFuncOp::create(
      b, name, LLVM::LLVMFunctionType::get(i32, {ptr, ptr, ptr, ptr}));
  Block *entry = function.addEntryBlock(b);
  Block *former = &body.getBody().front();
  function.getBody().getBlocks().splice(function.getBody().end(),
                                        body.getBody().getBlocks());
  failure = new Block();
  function.getBody().push_back(failure);
  failure->addArgument(ptr, b.getLoc());

  b.setInsertionPointToStart(entry);
  Value host = function.getArgument(0);
  context = loadAt(ptr, host, 0);
  allocateFn = loadAt(ptr, host, 8);
  releaseFn = loadAt(ptr, host, 16);
  failFn = loadAt(ptr, host, 24);
  SmallVector<Value> arguments;
  for (unsigned i = 0; i < logical.getNumInputs(); ++i)
    readInput(arguments, i);
  for (unsigned i = 0; i < constants.size(); ++i)
    readConstant(arguments, i);
  if (arguments.size() != former->getNumArguments())
    return body.emitError("the function does not have the arguments that its "
                          "logical type asks for");
  LLVM::BrOp::create(b, arguments, former);

  b.setInsertionPointToStart(failure);
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(b.getContext()), {ptr, ptr});
  LLVM::CallOp::create(b, type,
                       ValueRange{failFn, context, failure->getArgument(0)});
  LLVM::ReturnOp::create(b,
                         LLVM::ConstantOp::create(b, b.getI32IntegerAttr(1)));

  SmallVector<LLVM::ReturnOp> returns;
  function.walk([&](LLVM::ReturnOp op) {
    if (op->getBlock() != failure)
      returns.push_back(op);
  });
  for (LLVM::ReturnOp op : returns)
    writeOutputs(op);
  LogicalResult result = rewriteCalls();
  body.erase();
  return result;
}

namespace {
struct LowerHostFunction
    : mlir::llm::impl::LowerHostFunctionPassBase<LowerHostFunction> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<LLVM::LLVMFuncOp> functions;
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (function->hasAttr(kHostConstantsAttr))
        functions.push_back(function);
    for (LLVM::LLVMFuncOp function : functions) {
      auto logical = function->getAttrOfType<TypeAttr>(kLogicalTypeAttr);
      auto constants = function->getAttrOfType<ArrayAttr>(kHostConstantsAttr);
      if (!logical || !isa<FunctionType>(logical.getValue())) {
        function.emitError("has no ") << kLogicalTypeAttr;
        return signalPassFailure();
      }
      SmallVector<Type> types;
      for (Attribute each : constants)
        types.push_back(cast<TypeAttr>(each).getValue());
      if (failed(
              Wrapper(function, cast<FunctionType>(logical.getValue()), types)
                  .run()))
        return signalPassFailure();
    }
    // Nothing calls them any more.
    for (StringRef name :
         {kCheckFunction, StringRef("_mlir_memref_to_llvm_aligned_alloc"),
          StringRef("_mlir_memref_to_llvm_alloc"),
          StringRef("_mlir_memref_to_llvm_free")})
      if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
        function.erase();
  }
};
} // namespace
