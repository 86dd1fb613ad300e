//===- RowOutput.cpp - The forms in which rows are written ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// quantize_rows, cast_rows, and the same as the last step of other kernels.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/RowOutput.h"

#include "passes/Kernels/CPU/Quantize.h"
#include "passes/Kernels/Layouts.h"

namespace mlir::llm {

static FailureOr<RowForm> int8Form(KernelBuilder &kernel, int64_t dim) {
  FailureOr<int64_t> groupSize = kernel.getInt("group_size"),
                     zero = kernel.getInt("zero", 1, 128);
  if (failed(groupSize) || failed(zero))
    return failure();
  if (std::min(*groupSize, dim) > Layout::kMaxInt8Group)
    return kernel.kernel().emitOpError("groups of int8 have at most ")
           << Layout::kMaxInt8Group << " elements";
  return RowForm{RowForm::Kind::Int8, dim, *groupSize, *zero};
}

FailureOr<RowForm> RowForm::of(KernelBuilder &kernel, int64_t dim) {
  rt::KernelOp op = kernel.kernel();
  RowForm form;
  form.dim = dim;
  auto name = op.getParams().getAs<StringAttr>("output");
  if (!name || name.getValue() == "f32")
    return form;
  if (name.getValue() == "bf16") {
    form.kind = Kind::BF16;
    return form;
  }
  if (name.getValue() != "int8")
    return op.emitOpError("output is f32, bf16 or int8, not ") << name;
  return int8Form(kernel, dim);
}

void RowForm::addBuffers(SmallVectorImpl<Emitter::Buffer> &buffers,
                         MLIRContext *context) const {
  Type f32 = Float32Type::get(context);
  switch (kind) {
  case Kind::F32:
    return buffers.push_back({f32});
  case Kind::BF16:
    return buffers.push_back({BFloat16Type::get(context)});
  case Kind::Int8:
    buffers.push_back({IntegerType::get(context, 8)});
    buffers.push_back({f32});
    return buffers.push_back({IntegerType::get(context, 32)});
  }
}

/// Calls `body(group, first element, elements)` for the groups of a row.
void RowOutput::forGroups(function_ref<void(Value, Value, int64_t)> body) {
  int64_t whole = form.dim / form.groupSize;
  if (whole)
    e.loop(e.idx(0), e.idx(whole), 1, [&](Value g) {
      body(g, e.muli(g, form.groupSize), form.groupSize);
    });
  if (int64_t rest = form.dim % form.groupSize)
    body(e.idx(whole), e.idx(whole * form.groupSize), rest);
}

/// Codes, scale and offset of the group of `length` elements at `from`.
void RowOutput::quantizeGroup(Value source, Value from, Value to, Value at,
                              int64_t length) {
  int64_t width = e.width(), full = length / width * width;
  Value codes = e.buffer(first);
  GroupScale scale = scaleOf(e, magnitudeOf(e, source, from, length), 127);
  auto quantize = [&](Value offset, int64_t lanes) {
    Value code = toInt8(e, e.mul(e.loadVec(source, e.addi(from, offset), lanes),
                                 e.broadcast(scale.inverse, lanes)));
    Value narrow = arith::TruncIOp::create(
        e, VectorType::get({lanes}, e.getIntegerType(8)), code);
    e.storeVec(narrow, codes, e.addi(to, offset));
    return code;
  };
  auto total = [&](Value code) -> Value {
    return vector::ReductionOp::create(e, vector::CombiningKind::ADD, code);
  };
  Value sum = e.i32(0);
  if (full) {
    SmallVector<Value> sums =
        e.loop(e.idx(0), e.idx(full), width, {e.splatInt(0, width, 32)},
               [&](Value d, ValueRange values) -> SmallVector<Value> {
                 return {e.addi(values[0], quantize(d, width))};
               });
    sum = total(sums[0]);
  }
  if (length > full)
    sum = e.addi(sum, total(quantize(e.idx(full), length - full)));
  e.store(scale.scale, e.buffer(first + 1), at);
  e.store(e.muli(sum, e.i32(-form.zero)), e.buffer(first + 2), at);
}

/// Zeros behind the codes of row `t`, to the end of the last word of any width.
void RowOutput::endCodes(Value t) {
  Value zero = arith::ConstantOp::create(e, e.getI8IntegerAttr(0));
  Value to = e.muli(t, codeRowStride(form.dim));
  for (int64_t i = form.dim; i % 16; ++i)
    e.store(zero, e.buffer(first), e.addi(to, i));
}

void RowOutput::quantize(Value t, Value source, Value from) {
  Value to = e.muli(t, codeRowStride(form.dim));
  Value at = e.muli(t, (form.dim - 1) / form.groupSize + 1);
  forGroups([&](Value g, Value offset, int64_t length) {
    quantizeGroup(source, e.addi(from, offset), e.addi(to, offset),
                  e.addi(at, g), length);
  });
  endCodes(t);
}

void RowOutput::write(Value t, function_ref<Value(Value, int64_t)> values) {
  switch (form.kind) {
  case RowForm::Kind::F32: {
    Value row = e.muli(t, form.dim);
    return e.forRow(form.dim, [&](Value d, int64_t lanes) {
      e.storeVec(values(d, lanes), e.buffer(first), e.addi(row, d));
    });
  }
  case RowForm::Kind::BF16: {
    Value row = e.muli(t, pairRowStride(form.dim));
    e.forRow(form.dim, [&](Value d, int64_t lanes) {
      e.storeVec(values(d, lanes), e.buffer(first), e.addi(row, d));
    });
    if (form.dim % 2)
      e.storeVec(e.splat(0, 1), e.buffer(first), e.addi(row, form.dim));
    return;
  }
  case RowForm::Kind::Int8: {
    // A group's elements are read twice: they are kept, not computed again.
    Value kept = e.scratch(e.getF32Type(), std::min(form.groupSize, form.dim));
    Value to = e.muli(t, codeRowStride(form.dim));
    Value at = e.muli(t, (form.dim - 1) / form.groupSize + 1);
    forGroups([&](Value g, Value offset, int64_t length) {
      e.forRow(length, [&](Value d, int64_t lanes) {
        e.storeVec(values(e.addi(offset, d), lanes), kept, d);
      });
      quantizeGroup(kept, e.idx(0), e.addi(to, offset), e.addi(at, g), length);
    });
    return endCodes(t);
  }
  }
}

static LogicalResult generateQuantizeRows(KernelBuilder &kernel) {
  FailureOr<int64_t> k = kernel.getInt("k");
  if (failed(k))
    return failure();
  FailureOr<RowForm> form = int8Form(kernel, *k);
  if (failed(form))
    return failure();
  MLIRContext *context = kernel.kernel().getContext();
  SmallVector<Emitter::Buffer> buffers{{Float32Type::get(context)}};
  form->addBuffers(buffers, context);
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, buffers, 1);
  RowOutput output(e, *form, 1);
  e.loop(e.begin(), e.end(), 1,
         [&](Value t) { output.quantize(t, e.buffer(0), e.muli(t, *k)); });
  e.finish();
  kernel.addVariant(name);
  return success();
}

static LogicalResult generateCastRows(KernelBuilder &kernel) {
  FailureOr<int64_t> k = kernel.getInt("k");
  if (failed(k))
    return failure();
  MLIRContext *context = kernel.kernel().getContext();
  RowForm form{RowForm::Kind::BF16, *k};
  SmallVector<Emitter::Buffer> buffers{{Float32Type::get(context)}};
  form.addBuffers(buffers, context);
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, buffers, 1);
  RowOutput output(e, form, 1);
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    Value row = e.muli(t, *k);
    output.write(t, [&](Value d, int64_t lanes) {
      return e.loadVec(e.buffer(0), e.addi(row, d), lanes);
    });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

void populateRowOutputKernels(KernelRegistry &registry) {
  registry.add("cpu", "cast_rows", generateCastRows);
  registry.add("cpu", "quantize_rows", generateQuantizeRows);
}

} // namespace mlir::llm
