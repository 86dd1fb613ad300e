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
  FailureOr<int64_t> scaleGroup =
      scaleGroupOf(kernel, "scale_group", *groupSize);
  if (failed(scaleGroup))
    return failure();
  return RowForm{RowForm::Kind::Int8, dim, *groupSize, *zero, *scaleGroup};
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

int64_t RowForm::stride() const {
  switch (kind) {
  case Kind::F32:
    return dim;
  case Kind::BF16:
    return pairRowStride(dim);
  case Kind::Int8:
    return codeRowStride(dim);
  }
  llvm_unreachable("all kinds are handled");
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

/// Calls `body(scale group, elements)` for those of a row.
void RowOutput::forScaleGroups(function_ref<void(Value, int64_t)> body) {
  int64_t whole = form.dim / form.scaleGroup;
  if (whole)
    e.loop(e.idx(0), e.idx(whole), 1,
           [&](Value s) { body(s, form.scaleGroup); });
  if (int64_t rest = form.dim % form.scaleGroup)
    body(e.idx(whole), rest);
}

/// Codes of the `length` elements of `source` from `from` on; their sum.
Value RowOutput::encode(Value source, Value from, Value to, Value inverse,
                        int64_t length) {
  int64_t width = e.width(), full = length / width * width;
  auto part = [&](Value offset, int64_t lanes) {
    Value code = toInt8(e, e.mul(e.loadVec(source, e.addi(from, offset), lanes),
                                 e.broadcast(inverse, lanes)));
    Value narrow = arith::TruncIOp::create(
        e, VectorType::get({lanes}, e.getIntegerType(8)), code);
    e.storeVec(narrow, e.buffer(first), e.addi(to, offset));
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
                 return {e.addi(values[0], part(d, width))};
               });
    sum = total(sums[0]);
  }
  if (length > full)
    sum = e.addi(sum, total(part(e.idx(full), length - full)));
  return sum;
}

/// Codes, scale and offsets of the `length` elements of scale group `s` of row
/// `t`, which lie at `from`.
void RowOutput::quantizeGroup(Value t, Value s, Value source, Value from,
                              int64_t length) {
  GroupScale scale = scaleOf(e, magnitudeOf(e, source, from, length), 127);
  Value at = e.addi(e.muli(t, llvm::divideCeil(form.dim, form.scaleGroup)), s);
  e.store(scale.scale, e.buffer(first + 1), at);
  Value to =
      e.addi(e.muli(t, codeRowStride(form.dim)), e.muli(s, form.scaleGroup));
  Value firstGroup =
      e.addi(e.muli(t, llvm::divideCeil(form.dim, form.groupSize)),
             e.muli(s, form.scaleGroup / form.groupSize));
  auto group = [&](Value g, int64_t elements) {
    Value offset = e.muli(g, form.groupSize);
    Value sum = encode(source, e.addi(from, offset), e.addi(to, offset),
                       scale.inverse, elements);
    e.store(e.muli(sum, e.i32(-form.zero)), e.buffer(first + 2),
            e.addi(firstGroup, g));
  };
  int64_t whole = length / form.groupSize;
  if (whole)
    e.loop(e.idx(0), e.idx(whole), 1,
           [&](Value g) { group(g, form.groupSize); });
  if (int64_t rest = length % form.groupSize)
    group(e.idx(whole), rest);
}

void RowOutput::quantize(Value t, Value source, Value from) {
  forScaleGroups([&](Value s, int64_t length) {
    quantizeGroup(t, s, source, e.addi(from, e.muli(s, form.scaleGroup)),
                  length);
  });
  endRow(t);
}

void RowOutput::store(Value values, Value t, Value column) {
  e.storeVec(values, e.buffer(first), e.addi(e.muli(t, form.stride()), column));
}

/// What follows the elements and is read: zeros to the end of a code's word of
/// any width, the second one of a pair.
void RowOutput::endRow(Value t) {
  Value end = e.addi(e.muli(t, form.stride()), form.dim);
  if (form.kind == RowForm::Kind::BF16 && form.dim % 2)
    e.storeVec(e.splat(0, 1), e.buffer(first), end);
  if (form.kind != RowForm::Kind::Int8)
    return;
  Value zero = arith::ConstantOp::create(e, e.getI8IntegerAttr(0));
  for (int64_t i = 0; (form.dim + i) % 16; ++i)
    e.store(zero, e.buffer(first), e.addi(end, i));
}

void RowOutput::write(Value t, function_ref<Value(Value, int64_t)> values) {
  if (form.kind == RowForm::Kind::Int8) {
    // Kept, not computed again.
    Value kept = e.scratch(e.getF32Type(), std::min(form.scaleGroup, form.dim));
    forScaleGroups([&](Value s, int64_t length) {
      Value begin = e.muli(s, form.scaleGroup);
      e.forRow(length, [&](Value d, int64_t lanes) {
        e.storeVec(values(e.addi(begin, d), lanes), kept, d);
      });
      quantizeGroup(t, s, kept, e.idx(0), length);
    });
  } else {
    e.forRow(form.dim,
             [&](Value d, int64_t lanes) { store(values(d, lanes), t, d); });
  }
  endRow(t);
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
