//===- CompileModule.cpp - MLIR to an ELF shared object -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CPU/CompileModule.h"

#include "lib/Target/CPU/ExpandInstructions.h"
#include "lib/Target/CPU/LinkObject.h"
#include "lib/Target/CPU/MathExpansion.h"
#include "llm/ABI/kernel.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace llm {

static LogicalResult checkEntry(ModuleOp code, const TableEntry &entry) {
  Operation *op = SymbolTable::lookupSymbolIn(code, entry.function);
  if (entry.kind == TableEntry::Kind::Data) {
    if (!isa_and_nonnull<LLVM::GlobalOp>(op))
      return code.emitError("code module defines no llvm.mlir.global @")
             << entry.function;
    return success();
  }
  auto fn = dyn_cast_or_null<FunctionOpInterface>(op);
  if (!fn || fn.isExternal())
    return code.emitError("code module defines no function @")
           << entry.function;
  ArrayRef<Type> args = fn.getArgumentTypes(), results = fn.getResultTypes();
  if (entry.kind == TableEntry::Kind::Host) {
    bool pointers = args.size() == 4 && llvm::all_of(args, [](Type type) {
                      return isa<LLVM::LLVMPointerType>(type);
                    });
    if (!pointers || results.size() != 1 || !results[0].isInteger(32))
      return op->emitError("a host function takes four !llvm.ptr and returns "
                           "i32");
    return success();
  }
  auto isFlat = [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref && memref.getRank() == 1 && memref.hasStaticShape() &&
           memref.getLayout().isIdentity();
  };
  size_t buffers = 0;
  while (buffers < args.size() && isFlat(args[buffers]))
    ++buffers;
  bool sizes = args.size() >= buffers + 2;
  for (size_t i = buffers; sizes && i + 2 < args.size(); ++i)
    sizes = args[i].isInteger(64);
  if (!isa<func::FuncOp>(op) || !sizes || !results.empty() ||
      !args[args.size() - 1].isIndex() || !args[args.size() - 2].isIndex())
    return op->emitError("a kernel takes static 1-D memrefs, i64 sizes and two "
                         "index bounds, and returns nothing");
  return success();
}

static void addLoweringPasses(PassManager &pm) {
  pm.addPass(createConvertVectorToSCFPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createExpandMathPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.x86Vector = true;
  pm.addPass(createConvertVectorToLLVMPass(vectorOptions));
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions funcOptions;
  funcOptions.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(funcOptions));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

/// What the passes need and threads must not load.
static void loadLoweringDialects(MLIRContext *context) {
  PassManager pm(context, ModuleOp::getOperationName());
  addLoweringPasses(pm);
  DialectRegistry registry;
  pm.getDependentDialects(registry);
  context->appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context->getOrLoadDialect(name);
}

static LogicalResult lowerToLLVMDialect(ModuleOp module) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  addLoweringPasses(pm);
  if (failed(pm.run(module)))
    return module.emitError("cannot lower the code module to LLVM");
  // Partial conversions succeed with operations left over.
  WalkResult left = module.walk([&](Operation *op) {
    if (isa<ModuleOp>(op) || isa<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("has no lowering to CPU code");
    return WalkResult::interrupt();
  });
  return failure(left.wasInterrupted());
}

static FailureOr<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(ModuleOp code, const CPUTarget &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return code.emitError("no x86-64 code generator: ") << error;
  llvm::TargetOptions options;
  options.FunctionSections = true;
  options.DataSections = true;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, "x86-64", target.featureString(), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Parts of a code module that are compiled apart: as many whatever the number
/// of threads, so that the same input gives the same bytes.
static constexpr size_t kParts = 8;

/// The symbols of `code` that `entries` reach, in their order.
static llvm::SetVector<Operation *>
reachableFrom(ModuleOp code, ArrayRef<TableEntry> entries) {
  SymbolTable table(code);
  llvm::SetVector<Operation *> reached;
  for (const TableEntry &entry : entries)
    reached.insert(table.lookup(entry.function));
  for (size_t i = 0; i < reached.size(); ++i)
    if (auto uses = SymbolTable::getSymbolUses(reached[i]))
      for (SymbolTable::SymbolUse use : *uses)
        if (Operation *op = table.lookup(use.getSymbolRef().getRootReference()))
          reached.insert(op);
  return reached;
}

/// The entries of each part. Part 0 has all that are no kernels, too, and the
/// table. Kernels share nothing but constants and functions, which each part
/// has for itself; a code module where they do is one part.
static std::vector<SmallVector<TableEntry>>
splitEntries(ModuleOp code, ArrayRef<TableEntry> entries) {
  std::vector<SmallVector<TableEntry>> parts(1);
  SmallVector<std::pair<size_t, const TableEntry *>> kernels;
  for (const TableEntry &entry : entries) {
    if (entry.kind != TableEntry::Kind::Kernel) {
      parts.front().push_back(entry);
      continue;
    }
    size_t operations = 0;
    SymbolTable::lookupSymbolIn(code, entry.function)->walk([&](Operation *) {
      ++operations;
    });
    kernels.emplace_back(operations, &entry);
  }
  bool shares = false;
  for (Operation *op : reachableFrom(code, entries)) {
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    auto memref = dyn_cast<memref::GlobalOp>(op);
    shares |=
        (global && !global.getConstant()) || (memref && !memref.getConstant());
  }
  if (shares)
    return {SmallVector<TableEntry>(entries)};
  // The largest first, each to the part that has least so far.
  llvm::sort(kernels, [](const auto &a, const auto &b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  parts.resize(std::clamp<size_t>(kernels.size(), 1, kParts));
  std::vector<size_t> sizes(parts.size(), 0);
  for (auto [operations, entry] : kernels) {
    size_t least = llvm::min_element(sizes) - sizes.begin();
    sizes[least] += operations;
    parts[least].push_back(*entry);
  }
  return parts;
}

/// A module of what `entries` need.
static OwningOpRef<ModuleOp> clonePart(ModuleOp code,
                                       ArrayRef<TableEntry> entries) {
  auto part = ModuleOp::create(code.getLoc(), code.getSymName());
  part->setAttrs(code->getAttrDictionary());
  llvm::SetVector<Operation *> reached = reachableFrom(code, entries);
  OpBuilder b = OpBuilder::atBlockEnd(part.getBody());
  // In the order of the module: the same input gives the same bytes.
  for (Operation &op : *code.getBody())
    if (reached.contains(&op))
      b.clone(op);
  return part;
}

//===----------------------------------------------------------------------===//
// Wrappers and the table
//===----------------------------------------------------------------------===//

/// Of wrappers; other parts of the code see them.
static llvm::Function *declareWrapper(llvm::Module &module, StringRef kernel) {
  llvm::IRBuilder<> b(module.getContext());
  llvm::Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  auto *type = llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, i64, i64},
                                       /*isVarArg=*/false);
  auto *wrapper = llvm::Function::Create(
      type, llvm::GlobalValue::ExternalLinkage, kernel + ".entry", module);
  wrapper->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return wrapper;
}

/// void wrapper(ptr buffers, ptr sizes, i64 begin, i64 end): unpacks the arrays
/// and calls `kernel`, which becomes part of it.
static void makeWrapper(llvm::Function *kernel) {
  llvm::LLVMContext &context = kernel->getContext();
  llvm::IRBuilder<> b(context);
  llvm::Function *wrapper =
      declareWrapper(*kernel->getParent(), kernel->getName());
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", wrapper));
  SmallVector<llvm::Value *> args;
  unsigned buffers = 0, sizes = 0;
  llvm::MDNode *invariant = llvm::MDNode::get(context, {});
  for (llvm::Argument &arg : kernel->args()) {
    if (arg.getArgNo() + 2 >= kernel->arg_size()) {
      args.push_back(wrapper->getArg(
          2 + arg.getArgNo() + 2 - static_cast<unsigned>(kernel->arg_size())));
      continue;
    }
    bool buffer = arg.getType()->isPointerTy();
    unsigned index = buffer ? buffers++ : sizes++;
    llvm::Value *slot = b.CreateConstInBoundsGEP1_64(
        arg.getType(), wrapper->getArg(buffer ? 0 : 1), index);
    llvm::LoadInst *load =
        b.CreateAlignedLoad(arg.getType(), slot, llvm::Align(8), arg.getName());
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, invariant);
    if (buffer)
      load->setMetadata(
          llvm::LLVMContext::MD_align,
          llvm::MDNode::get(context,
                            llvm::ConstantAsMetadata::get(b.getInt64(64))));
    args.push_back(load);
  }
  b.CreateCall(kernel, args);
  b.CreateRetVoid();
  kernel->addFnAttr(llvm::Attribute::AlwaysInline);
}

/// The table of all entries; wrappers that this part has none of are another
/// one's.
static void makeTable(llvm::Module &module, ArrayRef<TableEntry> entries) {
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty();
  auto *entryType = llvm::StructType::get(context, {ptr, ptr});
  SmallVector<llvm::Constant *> rows;
  for (const TableEntry &entry : entries) {
    llvm::Constant *value = nullptr;
    if (entry.kind == TableEntry::Kind::Kernel) {
      value = module.getFunction(entry.function + ".entry");
      if (!value)
        value = declareWrapper(module, entry.function);
    } else {
      auto *symbol =
          cast<llvm::GlobalObject>(module.getNamedValue(entry.function));
      symbol->setLinkage(llvm::GlobalValue::InternalLinkage);
      value = symbol;
    }
    auto *text =
        llvm::ConstantDataArray::getString(context, entry.function, true);
    auto *name = new llvm::GlobalVariable(module, text->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage,
                                          text, "llm.name");
    rows.push_back(llvm::ConstantStruct::get(entryType, {name, value}));
  }
  auto *arrayType = llvm::ArrayType::get(entryType, rows.size());
  auto *array = new llvm::GlobalVariable(
      module, arrayType, true, llvm::GlobalValue::InternalLinkage,
      llvm::ConstantArray::get(arrayType, rows), "llm.entries");
  auto *tableType = llvm::StructType::get(context, {i32, i32, ptr});
  llvm::GlobalVariable *table =
      module.getOrInsertGlobal(LLM_KERNEL_TABLE_SYMBOL, tableType);
  table->setConstant(true);
  table->setInitializer(llvm::ConstantStruct::get(
      tableType, {b.getInt32(LLM_KERNEL_ABI_VERSION),
                  b.getInt32(static_cast<uint32_t>(rows.size())), array}));
  table->setVisibility(llvm::GlobalValue::DefaultVisibility);
}

/// Gives memcpy, memmove and memset a body: LLVM calls them for its own
/// intrinsics, and a code object has nobody to ask. Byte loops, which the
/// vectorizer widens; "no-builtins" keeps them from being recognised as
/// themselves. Unused ones go with --gc-sections.
static void defineMemoryFunctions(llvm::Module &module) {
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty(), *i8 = b.getInt8Ty();
  enum Kind { Copy, Move, Set };
  auto define = [&](StringRef name, Kind kind) {
    llvm::Type *second = kind == Set ? b.getInt32Ty() : ptr;
    auto *type = llvm::FunctionType::get(ptr, {ptr, second, i64}, false);
    auto callee = module.getOrInsertFunction(name, type);
    auto *fn = dyn_cast<llvm::Function>(callee.getCallee());
    if (!fn || !fn->isDeclaration() || fn->getFunctionType() != type)
      return;
    fn->setVisibility(llvm::GlobalValue::HiddenVisibility);
    // Each part has them.
    fn->setLinkage(llvm::GlobalValue::WeakODRLinkage);
    llvm::Value *to = fn->getArg(0), *from = fn->getArg(1),
                *size = fn->getArg(2);
    auto *entry = llvm::BasicBlock::Create(context, "entry", fn);
    auto *exit = llvm::BasicBlock::Create(context, "exit", fn);
    b.SetInsertPoint(exit);
    b.CreateRet(to);
    // A loop over [0, size), upwards or downwards.
    auto loop = [&](StringRef label, bool down) {
      auto *body = llvm::BasicBlock::Create(context, label, fn, exit);
      b.SetInsertPoint(body);
      llvm::PHINode *i = b.CreatePHI(i64, 2);
      i->addIncoming(b.getInt64(0), entry);
      llvm::Value *at =
          down ? b.CreateSub(b.CreateSub(size, i), b.getInt64(1)) : i;
      llvm::Value *byte =
          kind == Set ? b.CreateTrunc(from, i8)
                      : b.CreateLoad(i8, b.CreateInBoundsGEP(i8, from, at));
      b.CreateStore(byte, b.CreateInBoundsGEP(i8, to, at));
      llvm::Value *next = b.CreateAdd(i, b.getInt64(1));
      i->addIncoming(next, body);
      b.CreateCondBr(b.CreateICmpEQ(next, size), exit, body);
      return body;
    };
    llvm::BasicBlock *up = loop("up", false);
    llvm::BasicBlock *down = kind == Move ? loop("down", true) : nullptr;
    b.SetInsertPoint(entry);
    llvm::Value *empty = b.CreateICmpEQ(size, b.getInt64(0));
    if (!down) {
      b.CreateCondBr(empty, exit, up);
      return;
    }
    auto *choose = llvm::BasicBlock::Create(context, "choose", fn, up);
    b.CreateCondBr(empty, exit, choose);
    for (llvm::BasicBlock *body : {up, down})
      cast<llvm::PHINode>(body->begin())->setIncomingBlock(0, choose);
    b.SetInsertPoint(choose);
    b.CreateCondBr(b.CreateICmpULT(from, to), down, up);
  };
  define("memcpy", Copy);
  define("memmove", Move);
  define("memset", Set);
}

static void setFunctionAttributes(llvm::Module &module,
                                  const CPUTarget &target) {
  for (llvm::Function &fn : module) {
    if (fn.isDeclaration())
      continue;
    fn.addFnAttr("target-cpu", "x86-64");
    fn.addFnAttr("target-features", target.featureString());
    fn.addFnAttr("tune-cpu", target.tune);
    fn.addFnAttr("prefer-vector-width",
                 std::to_string(target.vectorWidth() * 32));
    fn.addFnAttr("no-builtins");
    fn.addFnAttr(llvm::Attribute::NoUnwind);
    fn.setUWTableKind(llvm::UWTableKind::None);
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = true;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, mam);
}

/// An ELF object of `part`, some entries of `code`; with the table of `entries`
/// where there are any.
static FailureOr<SmallVector<char, 0>>
compilePart(ModuleOp code, const CPUTarget &target, ArrayRef<TableEntry> part,
            ArrayRef<TableEntry> entries) {
  OwningOpRef<ModuleOp> module = clonePart(code, part);
  if (failed(lowerToLLVMDialect(*module)))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> ir =
      translateModuleToLLVMIR(*module, context, "code");
  if (!ir)
    return code.emitError("cannot translate the code module to LLVM IR");
  FailureOr<std::unique_ptr<llvm::TargetMachine>> machine =
      makeTargetMachine(code, target);
  if (failed(machine))
    return failure();
  ir->setTargetTriple((*machine)->getTargetTriple());
  ir->setDataLayout((*machine)->createDataLayout());
  ir->setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function &fn : *ir)
    if (!fn.isDeclaration())
      fn.setLinkage(llvm::GlobalValue::InternalLinkage);
  for (const TableEntry &entry : part)
    if (entry.kind == TableEntry::Kind::Kernel)
      makeWrapper(ir->getFunction(entry.function));
  if (!entries.empty())
    makeTable(*ir, entries);
  defineMemoryFunctions(*ir);
  setFunctionAttributes(*ir, target);
  expandInstructions(*ir, target);
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(*ir, &problems))
    return code.emitError("the code module gives invalid LLVM IR: ") << problem;
  optimize(*ir, **machine);

  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  if ((*machine)->addPassesToEmitFile(emit, stream, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return code.emitError("the x86-64 backend cannot write object files");
  emit.run(*ir);
  return object;
}

FailureOr<SmallVector<char, 0>>
compileToSharedObject(ModuleOp code, const CPUTarget &target,
                      ArrayRef<TableEntry> entries) {
  for (const TableEntry &entry : entries)
    if (failed(checkEntry(code, entry)))
      return failure();
  loadLoweringDialects(code.getContext());
  std::vector<SmallVector<TableEntry>> parts = splitEntries(code, entries);
  std::vector<SmallVector<char, 0>> objects(parts.size());
  if (failed(failableParallelForEachN(
          code.getContext(), 0, parts.size(), [&](size_t i) -> LogicalResult {
            FailureOr<SmallVector<char, 0>> object = compilePart(
                code, target, parts[i],
                i ? ArrayRef<TableEntry>() : ArrayRef<TableEntry>(entries));
            if (succeeded(object))
              objects[i] = std::move(*object);
            return object;
          })))
    return failure();
  return linkSharedObject(objects, LLM_KERNEL_TABLE_SYMBOL,
                          [&] { return code.emitError(); });
}

} // namespace llm
