//===- VerifyImport.cpp - The contract of the import stage ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Verify/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::llm {
#define GEN_PASS_DEF_VERIFYIMPORTPASS
#include "passes/Verify/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static LogicalResult verifyDims(func::FuncOp func, const Twine &what, Type type,
                                Attribute attr) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return func.emitError()
           << what << " is " << type << ", not a ranked tensor";
  if (!attr)
    return success();
  auto dims = dyn_cast<ArrayAttr>(attr);
  if (!dims || static_cast<int64_t>(dims.size()) != tensor.getRank() ||
      !llvm::all_of(dims, [](Attribute dim) { return isa<StringAttr>(dim); }))
    return func.emitError()
           << what << " of type " << type << " needs 'llm.dims' of "
           << tensor.getRank() << " strings, got " << attr;
  return success();
}

static LogicalResult verifyImported(ModuleOp module) {
  func::FuncOp main;
  for (func::FuncOp func : module.getOps<func::FuncOp>()) {
    if (func.isDeclaration())
      return func.emitError("has no body");
    if (!func.isPublic())
      continue;
    if (main) {
      InFlightDiagnostic diag =
          func.emitError("a second public function; a model is one");
      diag.attachNote(main.getLoc()) << "the other one";
      return diag;
    }
    main = func;
  }
  if (!main)
    return module.emitError("no public function holds the model");
  if (!main.getBody().hasOneBlock())
    return main.emitError("has more than one block");
  ::llvm::StringSet<> names;
  for (unsigned i = 0, e = main.getNumArguments(); i < e; ++i) {
    auto name = main.getArgAttrOfType<StringAttr>(i, kNameAttr);
    if (!name)
      return main.emitError() << "argument " << i << " has no 'llm.name'";
    if (!names.insert(name).second)
      return main.emitError()
             << "two arguments are named '" << name.getValue() << "'";
    if (failed(verifyDims(main, "argument " + Twine(i),
                          main.getArgumentTypes()[i],
                          main.getArgAttr(i, kDimsAttr))))
      return failure();
  }
  for (unsigned i = 0, e = main.getNumResults(); i < e; ++i)
    if (failed(verifyDims(main, "result " + Twine(i), main.getResultTypes()[i],
                          main.getResultAttr(i, kDimsAttr))))
      return failure();
  // Control flow (If, Loop, Scan) is imported as scf, its conditions and
  // counters as scalars taken out of tensors.
  for (Operation &op : main.getBody().front().without_terminator()) {
    StringRef dialect = op.getName().getDialectNamespace();
    if (!llvm::is_contained({"llm", "scf", "tensor", "arith"}, dialect))
      return op.emitOpError("is neither of the llm dialect nor control flow, "
                            "which an imported model is made of");
  }
  return success();
}

namespace {
struct VerifyImport : mlir::llm::impl::VerifyImportPassBase<VerifyImport> {
  void runOnOperation() override {
    if (failed(verifyImported(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
