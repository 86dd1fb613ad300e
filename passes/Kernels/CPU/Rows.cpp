//===- Rows.cpp - kernels that move rows ----------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Emitter.h"
#include "passes/Kernels/CPU/UnpackedPanel.h"
#include "passes/Kernels/Layouts.h"

namespace mlir::llm {

//===----------------------------------------------------------------------===//
// embedding
//===----------------------------------------------------------------------===//

/// Elements of affine groups are read one by one: a row of an embedding is
/// small beside the matrices that follow it.
static void emitPanelRow(Emitter &e, const Layout &layout, Value table,
                         Value row, Value out, Value to) {
  Value panel = e.divi(row, kPanelBlock), lane = e.remi(row, kPanelBlock);
  Value base = e.addi(e.muli(panel, layout.k * kPanelBlock), lane);
  e.loop(e.idx(0), e.idx(layout.k), 1, [&](Value d) {
    Value value = e.load(table, e.addi(base, e.muli(d, kPanelBlock)));
    e.store(e.widen(value), out, e.addi(to, d));
  });
}

static void emitPanelPairsRow(Emitter &e, const Layout &layout, Value table,
                              Value row, Value out, Value to) {
  Value panel = e.divi(row, kPanelBlock), lane = e.remi(row, kPanelBlock);
  Value base =
      e.addi(e.muli(panel, layout.pairs() * 2 * kPanelBlock), e.muli(lane, 2));
  e.loop(e.idx(0), e.idx(layout.k), 1, [&](Value d) {
    Value line = e.addi(base, e.muli(e.divi(d, 2), 2 * kPanelBlock));
    Value value = e.load(table, e.addi(line, e.remi(d, 2)));
    e.store(e.widen(value), out, e.addi(to, d));
  });
}

/// (code - zero) * scale.
static Value dequantize(Emitter &e, Value code, Value scale, Value zero) {
  Value integer = arith::UIToFPOp::create(e, e.getF32Type(), code);
  return e.mul(e.sub(integer, zero), scale);
}

/// `bits` bits of the i32 `word` from `shift` (an index) on.
static Value extractCode(Emitter &e, Value word, Value shift, int64_t bits) {
  Value amount = arith::IndexCastOp::create(e, e.getI32Type(), shift);
  Value shifted = arith::ShRUIOp::create(e, word, amount);
  return arith::AndIOp::create(e, shifted, e.i32((1 << bits) - 1));
}

static void emitPanelAffineRow(Emitter &e, const Layout &layout, Value table,
                               Value row, Value out, Value to) {
  Value panel = e.divi(row, kPanelBlock), lane = e.remi(row, kPanelBlock);
  Value base = e.muli(panel, layout.panelBytes());
  int64_t perWord = layout.wordInputs();
  auto group = [&](Value at, Value first, int64_t length) {
    int64_t scaleBytes = layout.scaleType.getIntOrFloatBitWidth() / 8;
    Value scales = e.addi(at, layout.codeBytes(length)), scale, factors;
    if (layout.factorGroup)
      factors = e.loadVecAs(e.getI32Type(), table,
                            e.addi(scales, e.muli(lane, scaleBytes)), 1);
    else
      scale = e.loadAs(layout.scaleType, table,
                       e.addi(scales, e.muli(lane, scaleBytes)));
    Value zero = e.f32(static_cast<float>(layout.commonZero()));
    if (layout.zeroType) {
      Value zeros = e.addi(scales, kPanelBlock * scaleBytes);
      int64_t zeroBytes = layout.zeroType.getIntOrFloatBitWidth() / 8;
      zero = e.loadAs(layout.zeroType, table,
                      e.addi(zeros, e.muli(lane, zeroBytes)));
    }
    auto scaleOf = [&](Value i) -> Value {
      if (!factors)
        return scale;
      Value factor = factorsOf(e, factors, e.divi(i, layout.factorGroup));
      Value product = e.mul(scalesOf(e, factors),
                            arith::SIToFPOp::create(e, e.f32Vec(1), factor));
      return vector::ExtractOp::create(e, product, 0);
    };
    e.loop(e.idx(0), e.idx(length), 1, [&](Value i) {
      Value within = e.remi(i, perWord);
      Value line = e.addi(e.muli(e.divi(i, perWord), kPanelBlock), lane);
      Value word = e.loadAs(e.getI32Type(), table, e.addi(at, e.muli(line, 4)));
      Value shift = e.addi(e.muli(e.remi(within, 4), 8),
                           e.muli(e.divi(within, 4), layout.bits));
      Value code = extractCode(e, word, shift, layout.bits);
      e.store(dequantize(e, code, scaleOf(i), zero), out,
              e.addi(e.addi(to, first), i));
    });
  };
  int64_t last = layout.groups() - 1;
  int64_t bytes = layout.groupBytes(layout.groupSize);
  if (last)
    e.loop(e.idx(0), e.idx(last), 1, [&](Value g) {
      group(e.addi(base, e.muli(g, bytes)), e.muli(g, layout.groupSize),
            layout.groupSize);
    });
  group(e.addi(base, last * bytes), e.idx(last * layout.groupSize),
        layout.groupLength(last));
}

static void emitAffineRow(Emitter &e, const Layout &layout, Value table,
                          Value row, Value out, Value to) {
  Value base = e.muli(row, layout.rowBytes());
  Value scales = e.addi(base, layout.rowCodeBytes());
  e.loop(e.idx(0), e.idx(layout.k), 1, [&](Value d) {
    Value g = e.divi(d, layout.groupSize);
    Value scale = e.loadAs(e.getF32Type(), table, e.addi(scales, e.muli(g, 4)));
    Value zero =
        e.loadAs(e.getF32Type(), table,
                 e.addi(scales, e.muli(e.addi(g, layout.groups()), 4)));
    Value bit = e.muli(d, layout.bits);
    Value word = e.loadAs(e.getI32Type(), table,
                          e.addi(base, e.muli(e.divi(bit, 32), 4)));
    Value code = extractCode(e, word, e.remi(bit, 32), layout.bits);
    e.store(dequantize(e, code, scale, zero), out, e.addi(to, d));
  });
}

static LogicalResult generateEmbedding(KernelBuilder &kernel) {
  rt::KernelOp op = kernel.kernel();
  FailureOr<int64_t> vocab = kernel.getInt("vocab"), dim = kernel.getInt("dim");
  if (failed(vocab) || failed(dim))
    return failure();
  auto dict = op.getParams().getAs<DictionaryAttr>("layout");
  if (!dict)
    return op.emitOpError("has no layout: run --llm-pack-weights first");
  FailureOr<Layout> layout =
      Layout::parse(dict, [&] { return op.emitOpError(); });
  if (failed(layout))
    return failure();
  if (layout->n != *vocab || layout->k != *dim)
    return op.emitOpError("layout is not one of ") << *vocab << " x " << *dim;
  if (layout->kind == Layout::Kind::GPUAffine)
    return op.emitOpError("has a layout for the GPU");
  MLIRContext *context = op.getContext();
  Type f32 = Float32Type::get(context), i32 = IntegerType::get(context, 32);
  std::string name = kernel.functionName("");
  Emitter e(kernel, name,
            {{i32}, {layout->elementType(context), layout->elements()}, {f32}},
            1);
  Value token = e.buffer(0), table = e.buffer(1), out = e.buffer(2);
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    Value id = e.toIndex(e.load(token, t));
    Value row = e.maxi(e.idx(0), e.mini(id, e.idx(*vocab - 1)));
    Value to = e.muli(t, *dim);
    switch (layout->kind) {
    case Layout::Kind::Rows: {
      Value from = e.muli(row, *dim);
      e.forRow(*dim, [&](Value d, int64_t lanes) {
        e.storeVec(e.loadVec(table, e.addi(from, d), lanes), out,
                   e.addi(to, d));
      });
      break;
    }
    case Layout::Kind::Panel:
      return emitPanelRow(e, *layout, table, row, out, to);
    case Layout::Kind::PanelPairs:
      return emitPanelPairsRow(e, *layout, table, row, out, to);
    case Layout::Kind::PanelAffine:
      return emitPanelAffineRow(e, *layout, table, row, out, to);
    case Layout::Kind::RowsAffine:
      return emitAffineRow(e, *layout, table, row, out, to);
    case Layout::Kind::GPUAffine:
      break; // Refused above.
    }
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

//===----------------------------------------------------------------------===//
// gather_rows, columns
//===----------------------------------------------------------------------===//

static LogicalResult generateGatherRows(KernelBuilder &kernel) {
  FailureOr<int64_t> dim = kernel.getInt("dim");
  if (failed(dim))
    return failure();
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context), i32 = IntegerType::get(context, 32);
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, {{f32}, {i32}, {f32}}, 1);
  Value x = e.buffer(0), rows = e.buffer(1), out = e.buffer(2);
  e.loop(e.begin(), e.end(), 1, [&](Value r) {
    Value from = e.muli(e.toIndex(e.load(rows, r)), *dim);
    Value to = e.muli(r, *dim);
    e.forRow(*dim, [&](Value d, int64_t lanes) {
      e.storeVec(e.loadVec(x, e.addi(from, d), lanes), out, e.addi(to, d));
    });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

static LogicalResult generateColumns(KernelBuilder &kernel) {
  FailureOr<int64_t> from = kernel.getInt("from"),
                     width = kernel.getInt("width"),
                     offset = kernel.getInt("offset", 0);
  if (failed(from) || failed(width) || failed(offset))
    return failure();
  if (*offset > *from - *width)
    return kernel.kernel().emitOpError("columns [")
           << *offset << ", " << *offset + *width << ") are not all in rows of "
           << *from;
  Type f32 = Float32Type::get(kernel.kernel().getContext());
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, {{f32}, {f32}}, 1);
  Value x = e.buffer(0), out = e.buffer(1);
  e.loop(e.begin(), e.end(), 1, [&](Value r) {
    Value source = e.addi(e.muli(r, *from), *offset);
    Value to = e.muli(r, *width);
    e.forRow(*width, [&](Value d, int64_t lanes) {
      e.storeVec(e.loadVec(x, e.addi(source, d), lanes), out, e.addi(to, d));
    });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

void populateRowKernels(KernelRegistry &registry) {
  registry.add("cpu", "columns", generateColumns);
  registry.add("cpu", "embedding", generateEmbedding);
  registry.add("cpu", "gather_rows", generateGatherRows);
}

} // namespace mlir::llm
