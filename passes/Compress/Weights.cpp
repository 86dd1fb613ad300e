//===- Weights.cpp - The weights that the compress passes take ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/Weights.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Error.h"

#include <cmath>
#include <cstring>

namespace mlir::llm {

SmallVector<WeightUses> collectWeightUses(ModuleOp module) {
  SmallVector<WeightUses> all;
  ::llvm::DenseMap<StringAttr, size_t> numbers;
  for (auto weight : module.getOps<WeightOp>()) {
    numbers[weight.getSymNameAttr()] = all.size();
    all.emplace_back().weight = weight;
  }
  module.walk([&](Operation *op) {
    auto value = dyn_cast<GetWeightOp>(op);
    if (!value) {
      // A symbol named by any other op is used in a way that we do not know.
      for (NamedAttribute attr : op->getAttrs())
        if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attr.getValue()))
          if (auto it = numbers.find(symbol.getAttr()); it != numbers.end())
            all[it->second].other = true;
      return;
    }
    auto it = numbers.find(value.getWeightAttr().getAttr());
    if (it == numbers.end())
      return;
    WeightUses &uses = all[it->second];
    uses.values.push_back(value);
    for (OpOperand &use : value.getResult().getUses()) {
      auto linear = dyn_cast<LinearOp>(use.getOwner());
      auto embedding = dyn_cast<EmbeddingOp>(use.getOwner());
      if (linear && &use == &linear.getWeightMutable()) {
        uses.linears.push_back(linear);
        (linear.getTransposed() ? uses.transposed : uses.plain) = true;
      } else if (embedding && &use == &embedding.getTableMutable()) {
        uses.table = true;
      } else {
        uses.other = true;
      }
    }
  });
  return all;
}

FailureOr<Selection>
Selection::parse(StringRef where, StringRef match,
                 function_ref<InFlightDiagnostic()> emitError) {
  Selection selection;
  auto place = ::llvm::StringSwitch<std::optional<Where>>(where)
                   .Case("all", Where::All)
                   .Case("layers", Where::Layers)
                   .Case("head", Where::Head)
                   .Default(std::nullopt);
  if (!place)
    return emitError() << "where must be all, layers or head, got '" << where
                       << "'";
  selection.where = *place;
  SmallVector<StringRef> patterns;
  match.split(patterns, '|', -1, /*KeepEmpty=*/false);
  for (StringRef text : patterns) {
    ::llvm::Expected<::llvm::GlobPattern> pattern =
        ::llvm::GlobPattern::create(text);
    if (!pattern)
      return emitError() << "match has the pattern '" << text
                         << "': " << ::llvm::toString(pattern.takeError());
    selection.patterns.push_back(std::move(*pattern));
  }
  return selection;
}

bool Selection::isThere(LinearOp linear) const {
  if (where == Where::All)
    return true;
  auto func = linear->getParentOfType<func::FuncOp>();
  if (!func || !func->hasAttr("llm.model"))
    return false;
  return func->hasAttr("llm.layer") == (where == Where::Layers);
}

bool Selection::contains(const WeightUses &uses) const {
  auto weight = uses.weight;
  if (!patterns.empty() &&
      ::llvm::none_of(patterns, [&](const ::llvm::GlobPattern &pattern) {
        return pattern.match(weight.getSymName());
      }))
    return false;
  return where == Where::All ||
         ::llvm::any_of(uses.linears,
                        [&](LinearOp linear) { return isThere(linear); });
}

std::optional<::llm::FloatKind> getFloatKind(Type type) {
  if (type.isF64())
    return ::llm::FloatKind::F64;
  if (type.isF32())
    return ::llm::FloatKind::F32;
  if (type.isF16())
    return ::llm::FloatKind::F16;
  if (type.isBF16())
    return ::llm::FloatKind::BF16;
  return std::nullopt;
}

FailureOr<FloatMatrix> FloatMatrix::open(WeightOp weight,
                                         DenseFormatAttr format,
                                         bool transposed,
                                         ::llm::WeightFiles &files) {
  RankedTensorType type = format.getData().getType();
  FailureOr<::llm::WeightData> data = ::llm::WeightData::open(
      format.getData(), [&] { return weight.emitOpError(); }, &files,
      /*verifyHash=*/true);
  if (failed(data))
    return failure();
  FloatMatrix matrix(std::move(*data), *getFloatKind(type.getElementType()));
  matrix.transposed = transposed;
  matrix.numRows = type.getDimSize(transposed ? 1 : 0);
  matrix.numColumns = type.getDimSize(transposed ? 0 : 1);
  return matrix;
}

void FloatMatrix::read(int64_t first, int64_t count, int64_t stride,
                       float *out) const {
  const char *bytes = data.bytes().data();
  int64_t size = bytesOf(kind);
  if (!transposed) {
    for (int64_t row = 0; row < count; ++row)
      widenRow(kind, bytes + (first + row) * numColumns * size, numColumns,
               out + row * stride);
    return;
  }
  // A square at a time, which stays in the nearest cache both ways.
  constexpr int64_t kSide = 32;
  float square[kSide][kSide];
  for (int64_t top = 0; top < numColumns; top += kSide) {
    int64_t height = std::min(kSide, numColumns - top);
    for (int64_t left = 0; left < count; left += kSide) {
      int64_t width = std::min(kSide, count - left);
      for (int64_t i = 0; i < height; ++i)
        widenRow(kind, bytes + ((top + i) * numRows + first + left) * size,
                 width, square[i]);
      for (int64_t j = 0; j < width; ++j)
        for (int64_t i = 0; i < height; ++i)
          out[(left + j) * stride + top + i] = square[i][j];
    }
  }
}

int64_t findNotFinite(const float *values, int64_t count) {
  bool bad = false;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    bad |= (bits & 0x7f800000) == 0x7f800000;
  }
  if (!bad)
    return -1;
  int64_t i = 0;
  for (; std::isfinite(values[i]); ++i) {
  }
  return i;
}

} // namespace mlir::llm
