//===- CastWeights.cpp - Store dense weights in 16 bits -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/WeightStore.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Threading.h"
#include "passes/Compress/Passes.h"
#include "passes/Compress/Weights.h"

#include <cmath>

namespace mlir::llm {
#define GEN_PASS_DEF_CASTWEIGHTSPASS
#include "passes/Compress/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// Casts one weight whose elements are wider than those of kind `to`.
static LogicalResult castWeight(ModuleOp module, WeightOp weight,
                                DenseFormatAttr format, FloatType type,
                                ::llm::WeightFiles &files) {
  RankedTensorType stored = format.getData().getType();
  ::llm::FloatKind from = *getFloatKind(stored.getElementType());
  ::llm::FloatKind to = *getFloatKind(type);
  FailureOr<::llm::WeightData> data = ::llm::WeightData::open(
      format.getData(), [&] { return weight.emitOpError(); }, &files,
      /*verifyHash=*/true);
  if (failed(data))
    return failure();
  int64_t count = stored.getNumElements();
  std::vector<char> bytes(count * bytesOf(to));
  constexpr int64_t kChunk = 1 << 14;
  Least overflow;
  parallelFor(module.getContext(), 0, ::llvm::divideCeil(count, kChunk),
              [&](size_t i) {
                auto first = static_cast<int64_t>(i) * kChunk;
                int64_t length = std::min(kChunk, count - first);
                std::vector<float> wide(length), back(length);
                widenRow(from, data->bytes().data() + first * bytesOf(from),
                         length, wide.data());
                char *out = bytes.data() + first * bytesOf(to);
                narrowRow(to, wide.data(), length, out);
                widenRow(to, out, length, back.data());
                int64_t at = findNotFinite(back.data(), length);
                if (at < 0)
                  return;
                for (; at < length; ++at)
                  if (std::isfinite(wide[at]) && !std::isfinite(back[at]))
                    return overflow.add(first + at);
              });
  if (std::optional<int64_t> at = overflow.get()) {
    float value;
    widenRow(from, data->bytes().data() + *at * bytesOf(from), 1, &value);
    return weight.emitOpError("element ")
           << *at << " is " << value << ", too large for " << type
           << "; leave this weight out with 'match', or take bf16";
  }
  RankedTensorType newType = stored.clone(Type(type));
  FailureOr<SmallVector<ComponentAttr>> parts = ::llm::storeComponents(
      module, {{"data", newType, bytes}}, [&] { return weight.emitOpError(); });
  if (failed(parts))
    return failure();
  weight.setFormatAttr(
      DenseFormatAttr::get(module.getContext(), parts->front()));
  return success();
}

namespace {
struct CastWeights : mlir::llm::impl::CastWeightsPassBase<CastWeights> {
  using CastWeightsPassBase::CastWeightsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto emit = [&] { return emitError(module.getLoc()); };
    Builder builder(&getContext());
    if (type != "bf16" && type != "f16") {
      emit() << "type must be bf16 or f16, got '" << type.getValue() << "'";
      return signalPassFailure();
    }
    FloatType narrow = type == "bf16" ? FloatType(builder.getBF16Type())
                                      : FloatType(builder.getF16Type());
    FailureOr<Selection> selection = Selection::parse(where, match, emit);
    if (failed(selection))
      return signalPassFailure();
    ::llm::WeightFiles files;
    for (const WeightUses &uses : collectWeightUses(module)) {
      WeightOp weight = uses.weight;
      auto format = dyn_cast<DenseFormatAttr>(weight.getFormat());
      if (uses.other || (uses.linears.empty() && !uses.table) || !format ||
          !selection->contains(uses))
        continue;
      Type stored = format.getData().getType().getElementType();
      if (!stored.isF32() && !stored.isF64())
        continue;
      if (failed(castWeight(module, weight, format, narrow, files)))
        return signalPassFailure();
      ++numCast;
    }
  }
};
} // namespace
