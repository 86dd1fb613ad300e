//===- Elementwise.cpp - Chains of elementwise operators for a CPU --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/ElementProgram.h"
#include "passes/Kernels/CPU/RowOutput.h"

namespace mlir::llm {

/// For each input whether it is one row for all, the parameter `broadcast`.
static FailureOr<SmallVector<bool>> broadcastInputs(KernelBuilder &kernel,
                                                    int64_t inputs) {
  rt::KernelOp op = kernel.kernel();
  auto flags = op.getParams().getAs<ArrayAttr>("broadcast");
  if (!flags)
    return SmallVector<bool>(inputs, false);
  SmallVector<bool> broadcast;
  for (Attribute flag : flags) {
    auto value = dyn_cast<BoolAttr>(flag);
    if (!value)
      return op.emitOpError("'broadcast' is an array of bool");
    broadcast.push_back(value.getValue());
  }
  if (static_cast<int64_t>(broadcast.size()) < inputs)
    return op.emitOpError("'in") << inputs - 1 << "' is not among the inputs";
  return broadcast;
}

static LogicalResult generateElementwise(KernelBuilder &kernel) {
  FailureOr<int64_t> width = kernel.getInt("width");
  FailureOr<ElementProgram> program = ElementProgram::parse(kernel);
  if (failed(width) || failed(program))
    return failure();
  FailureOr<SmallVector<bool>> broadcast =
      broadcastInputs(kernel, program->inputs());
  FailureOr<RowForm> form = RowForm::of(kernel, *width);
  if (failed(broadcast) || failed(form))
    return failure();
  int64_t outputs = program->outputs();
  if (outputs > 1 && form->kind != RowForm::Kind::F32)
    return kernel.kernel().emitOpError("has ")
           << outputs << " outputs; only one can be int8 or bf16";
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context);
  SmallVector<Emitter::Buffer> buffers;
  for (bool single : *broadcast)
    buffers.push_back({f32, single ? *width : kUnbounded});
  if (outputs == 1)
    form->addBuffers(buffers, context);
  else
    buffers.append(outputs, {f32});
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, buffers, 1);
  RowOutput output(e, *form, broadcast->size());
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    Value row = e.muli(t, *width);
    auto run = [&](Value d, int64_t lanes) {
      return program->run(e, lanes, [&](int64_t i) {
        return e.loadVec(e.buffer(i), (*broadcast)[i] ? d : e.addi(row, d),
                         lanes);
      });
    };
    if (outputs == 1)
      return output.write(
          t, [&](Value d, int64_t lanes) { return run(d, lanes).front(); });
    e.forRow(*width, [&](Value d, int64_t lanes) {
      for (auto [i, value] : llvm::enumerate(run(d, lanes)))
        e.storeVec(value, e.buffer(broadcast->size() + i), e.addi(row, d));
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
