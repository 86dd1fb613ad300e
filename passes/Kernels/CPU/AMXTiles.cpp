//===- AMXTiles.cpp - Matrix tiles of a kernel ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/AMXTiles.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::llm {

AMXTiles::AMXTiles(Emitter &e, int64_t depth)
    : e(e), depth(depth), config(e.scratch(e.getIntegerType(8), 64)) {}

void AMXTiles::call(StringRef name, ArrayRef<int64_t> tiles,
                    ValueRange operands) {
  SmallVector<Value> arguments;
  for (int64_t tile : tiles)
    arguments.push_back(arith::ConstantOp::create(e, e.getI8IntegerAttr(tile)));
  llvm::append_range(arguments, operands);
  LLVM::CallIntrinsicOp::create(e, e.getStringAttr(("llvm.x86." + name).str()),
                                arguments);
}

void AMXTiles::configure(Value rows) {
  auto set = [&](int64_t at, Value value) {
    e.store(arith::IndexCastOp::create(e, e.getIntegerType(8), value), config,
            e.idx(at));
  };
  constexpr int64_t kColumnBytes = 16, kRowCounts = 48;
  for (int64_t at = 0; at < 64; ++at)
    set(at, e.idx(at == 0)); // palette 1
  for (int64_t tile = 0; tile < 8; ++tile) {
    bool isInputs = tile >= kInputs && tile < kWeights;
    set(kColumnBytes + 2 * tile, e.idx(isInputs ? depth : 4 * kRows));
    set(kRowCounts + tile, tile >= kWeights ? e.idx(depth / 4) : rows);
  }
  call("ldtilecfg", {}, e.address(config, e.idx(0)));
}

void AMXTiles::load(int64_t tile, Value address, int64_t stride) {
  Value bytes = arith::ConstantOp::create(e, e.getI64IntegerAttr(stride));
  call("tileloadd64", tile, {address, bytes});
}

void AMXTiles::store(int64_t tile, Value address, int64_t stride) {
  Value bytes = arith::ConstantOp::create(e, e.getI64IntegerAttr(stride));
  call("tilestored64", tile, {address, bytes});
}

} // namespace mlir::llm
