//===- Norms.cpp - rms_norm and layer_norm for a CPU ----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/RowOutput.h"

namespace mlir::llm {

/// 1 / sqrt(sum / dim + epsilon).
static Value inverseDeviation(Emitter &e, Value sum, int64_t dim,
                              double epsilon) {
  Value mean = e.div(sum, e.f32(static_cast<float>(dim)));
  Value root = e.sqrt(e.add(mean, e.f32(static_cast<float>(epsilon))));
  return e.div(e.f32(1), root);
}

static LogicalResult generateRMSNorm(KernelBuilder &kernel) {
  FailureOr<int64_t> dim = kernel.getInt("dim");
  FailureOr<double> epsilon = kernel.getFloat("epsilon");
  if (failed(dim) || failed(epsilon))
    return failure();
  FailureOr<RowForm> form = RowForm::of(kernel, *dim);
  if (failed(form))
    return failure();
  std::string name = kernel.functionName("");
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context);
  SmallVector<Emitter::Buffer> buffers{{f32}, {f32, *dim}};
  form->addBuffers(buffers, context);
  Emitter e(kernel, name, buffers, 1);
  Value x = e.buffer(0), scale = e.buffer(1);
  RowOutput output(e, *form, 2);
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    Value row = e.muli(t, *dim);
    Value sum = e.sumRow(*dim, [&](Value d, int64_t lanes, Value acc) {
      Value v = e.loadVec(x, e.addi(row, d), lanes);
      return e.fma(v, v, acc);
    });
    Value inverse = inverseDeviation(e, sum, *dim, *epsilon);
    output.write(t, [&](Value d, int64_t lanes) {
      Value v = e.mul(e.loadVec(x, e.addi(row, d), lanes),
                      e.broadcast(inverse, lanes));
      return e.mul(v, e.loadVec(scale, d, lanes));
    });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

static LogicalResult generateLayerNorm(KernelBuilder &kernel) {
  FailureOr<int64_t> dim = kernel.getInt("dim");
  FailureOr<double> epsilon = kernel.getFloat("epsilon");
  if (failed(dim) || failed(epsilon))
    return failure();
  FailureOr<RowForm> form = RowForm::of(kernel, *dim);
  if (failed(form))
    return failure();
  bool hasBias = kernel.getBool("bias");
  std::string name = kernel.functionName("");
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context);
  SmallVector<Emitter::Buffer> buffers{{f32}, {f32, *dim}};
  if (hasBias)
    buffers.push_back({f32, *dim});
  form->addBuffers(buffers, context);
  Emitter e(kernel, name, buffers, 1);
  Value x = e.buffer(0), scale = e.buffer(1), bias = e.buffer(2);
  RowOutput output(e, *form, hasBias ? 3 : 2);
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    Value row = e.muli(t, *dim);
    Value sum = e.sumRow(*dim, [&](Value d, int64_t lanes, Value acc) {
      return e.add(acc, e.loadVec(x, e.addi(row, d), lanes));
    });
    Value mean = e.div(sum, e.f32(static_cast<float>(*dim)));
    // Two passes: the difference of squares would cancel.
    Value squares = e.sumRow(*dim, [&](Value d, int64_t lanes, Value acc) {
      Value v =
          e.sub(e.loadVec(x, e.addi(row, d), lanes), e.broadcast(mean, lanes));
      return e.fma(v, v, acc);
    });
    Value inverse = inverseDeviation(e, squares, *dim, *epsilon);
    output.write(t, [&](Value d, int64_t lanes) {
      Value v =
          e.sub(e.loadVec(x, e.addi(row, d), lanes), e.broadcast(mean, lanes));
      v = e.mul(e.mul(v, e.broadcast(inverse, lanes)),
                e.loadVec(scale, d, lanes));
      if (hasBias)
        v = e.add(v, e.loadVec(bias, d, lanes));
      return v;
    });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

void populateNormKernels(KernelRegistry &registry) {
  registry.add("cpu", "rms_norm", generateRMSNorm);
  registry.add("cpu", "layer_norm", generateLayerNorm);
}

} // namespace mlir::llm
