//===- QuantizeWeights.cpp - Store weights as small integers --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/WeightStore.h"
#include "mlir/IR/Threading.h"
#include "passes/Compress/InputStatistics.h"
#include "passes/Compress/Passes.h"
#include "passes/Compress/QuantizationMethod.h"
#include "passes/Compress/StatisticsWriter.h"
#include "passes/Compress/Weights.h"

namespace mlir::llm {
#define GEN_PASS_DEF_QUANTIZEWEIGHTSPASS
#include "passes/Compress/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// Inputs of a group at most: a kernel's int32 sum of products of a byte and
/// an int8 holds as many.
static constexpr int64_t kMaxGroup = 1 << 16;

namespace {
struct QuantizeWeights
    : mlir::llm::impl::QuantizeWeightsPassBase<QuantizeWeights> {
  using QuantizeWeightsPassBase::QuantizeWeightsPassBase;

  void runOnOperation() override;

private:
  InFlightDiagnostic emit() { return emitError(getOperation().getLoc()); }
  LogicalResult parseOptions();
  LogicalResult checkFactors();
  FailureOr<int64_t> groupSizeOf(WeightOp weight, int64_t columns);
  LogicalResult quantize(const WeightUses &uses);
  /// What the option or the module names; empty where neither does.
  std::string statisticsFile() {
    auto file = getOperation()->getAttrOfType<StringAttr>(kStatisticsAttr);
    return statistics.empty() && file ? file.str() : statistics.getValue();
  }

  const QuantizationMethod *chosen = nullptr;
  std::optional<InputStatistics> inputs;
  /// 0 is a row.
  int64_t size = 0;
  ::llm::WeightFiles files;
};
} // namespace

/// Inputs that a group has a multiple of: whole bytes of codes in the file and
/// whole words in a kernel.
static int64_t groupMultiple(unsigned bits) {
  return std::max<int64_t>(8, 32 / bits);
}

LogicalResult QuantizeWeights::parseOptions() {
  const auto *found =
      ::llvm::find_if(quantizationMethods(), [&](const auto &candidate) {
        return candidate.name == method;
      });
  if (found == quantizationMethods().end()) {
    InFlightDiagnostic error = emit() << "no method is named '"
                                      << method.getValue() << "'; there is ";
    ::llvm::interleaveComma(quantizationMethods(), error,
                            [&](const auto &known) { error << known.name; });
    return error;
  }
  chosen = found;
  if (bits != 2 && bits != 4 && bits != 8)
    return emit() << "kernels read 2, 4 or 8 bits, not " << bits.getValue();
  if (search > 64)
    return emit() << "search is at most 64, got " << search.getValue();
  if (search && !symmetric)
    return emit() << "search looks for symmetric scales only";
  if (!(damping >= 0 && damping <= 1))
    return emit() << "damping is a share of the mean square, from 0 to 1";
  if (chosen->needsGram && statisticsFile().empty())
    return emit() << "method " << method.getValue()
                  << " needs statistics=FILE, the Gram matrices of the inputs, "
                     "or --llm-calibrate before it";
  if (factorGroup && failed(checkFactors()))
    return failure();
  if (groupSize == "row")
    return success();
  if (StringRef(groupSize).getAsInteger(10, size) || size < 1 ||
      size > kMaxGroup || size % groupMultiple(bits) != 0)
    return emit() << "group-size must be row or a multiple of "
                  << groupMultiple(bits) << " up to " << kMaxGroup << " at "
                  << bits.getValue() << " bits, got '" << groupSize.getValue()
                  << "'";
  return success();
}

/// What the format asks of groups that factors split.
LogicalResult QuantizeWeights::checkFactors() {
  constexpr int64_t kMost = AffineGroupsFormatAttr::kMaxFactors,
                    kMostInputs = AffineGroupsFormatAttr::kMaxFactorGroup;
  int64_t each = factorGroup, whole = 0;
  if (bits != 4 || !symmetric)
    return emit() << "factor-group splits groups of 4 bits without zero points";
  if (StringRef(groupSize).getAsInteger(10, whole) || each % 8 != 0 ||
      each > kMostInputs || whole % each != 0 || whole / each > kMost)
    return emit() << "factor-group must be a multiple of 8, at most "
                  << kMostInputs << ", of which at most " << kMost
                  << " make a group of '" << groupSize.getValue() << "', got "
                  << each;
  return success();
}

FailureOr<int64_t> QuantizeWeights::groupSizeOf(WeightOp weight,
                                                int64_t columns) {
  if (size)
    return size;
  if (columns > kMaxGroup)
    return weight.emitOpError("has rows of ")
           << columns << " inputs, too long for one group of at most "
           << kMaxGroup << "; give a group-size";
  return ::llvm::alignTo(columns, groupMultiple(bits));
}

/// The scales as they are stored.
static std::vector<char> storeScales(ArrayRef<float> scales, bool half) {
  auto kind = half ? ::llm::FloatKind::F16 : ::llm::FloatKind::F32;
  std::vector<char> bytes(scales.size() * bytesOf(kind));
  narrowRow(kind, scales.data(), scales.size(), bytes.data());
  return bytes;
}

LogicalResult QuantizeWeights::quantize(const WeightUses &uses) {
  ModuleOp module = getOperation();
  MLIRContext *context = &getContext();
  WeightOp weight = uses.weight;
  FailureOr<FloatMatrix> matrix =
      FloatMatrix::open(weight, cast<DenseFormatAttr>(weight.getFormat()),
                        uses.transposed, files);
  if (failed(matrix))
    return failure();
  FailureOr<int64_t> group = groupSizeOf(weight, matrix->columns());
  if (failed(group))
    return failure();

  QuantizationRequest request;
  request.rows = matrix->rows();
  request.columns = matrix->columns();
  request.bits = bits;
  request.groupSize = *group;
  request.factorGroup = factorGroup;
  request.symmetric = symmetric;
  request.search = search;
  request.damping = damping;
  request.actOrder = actOrder;
  FailureOr<std::vector<double>> gram = std::vector<double>();
  if (chosen->needsGram)
    gram = inputs->gram(weight, request.columns);
  if (failed(gram))
    return failure();
  request.gram = *gram;
  Least bad;
  auto read = [&](int64_t first, int64_t count, float *out) {
    matrix->read(first, count, request.paddedColumns(), out);
    for (int64_t row = 0; row < count; ++row) {
      float *values = out + row * request.paddedColumns();
      int64_t at = findNotFinite(values, request.columns);
      if (at < 0)
        continue;
      bad.add((first + row) * request.columns + at);
      // No method has to look out for them.
      std::fill_n(values, request.columns, 0.0f);
    }
  };
  auto parallel = [&](int64_t count, ::llvm::function_ref<void(int64_t)> body) {
    parallelFor(context, 0, count, body);
  };
  request.read = read;
  request.parallelFor = parallel;
  QuantizedMatrix result;
  bool fits = chosen->quantize(request, result);
  if (std::optional<int64_t> at = bad.get())
    return weight.emitOpError("has an element that is not finite, for output ")
           << *at / request.columns << " and input " << *at % request.columns;
  if (!fits) {
    request.halfScales = false;
    request.groupSize = request.partSize();
    request.factorGroup = 0;
    chosen->quantize(request, result);
    ++numWideScales;
  }

  auto byte = IntegerType::get(context, 8, IntegerType::Unsigned);
  bool half = request.halfScales && !request.factorGroup;
  Type real =
      half ? Type(Float16Type::get(context)) : Type(Float32Type::get(context));
  std::vector<char> scales = storeScales(result.scales, half);
  SmallVector<::llm::NewComponent> components = {
      {"data",
       RankedTensorType::get({request.rows, request.codeRowBytes()}, byte),
       result.codes},
      {"scales", RankedTensorType::get({request.rows, request.groups()}, real),
       scales}};
  if (!symmetric)
    components.push_back(
        {"zeros",
         RankedTensorType::get({request.rows, request.zeroRowBytes()}, byte),
         result.zeros});
  if (request.factorGroup)
    components.push_back({"factors",
                          RankedTensorType::get({request.rows, request.parts()},
                                                IntegerType::get(context, 8)),
                          result.factors});
  FailureOr<SmallVector<ComponentAttr>> parts = ::llm::storeComponents(
      module, components, [&] { return weight.emitOpError(); });
  if (failed(parts))
    return failure();
  auto type = RankedTensorType::get({request.rows, request.columns},
                                    weight.getTensorType().getElementType());
  weight.setType(type);
  weight.setFormatAttr(AffineGroupsFormatAttr::get(
      context, bits, request.groupSize, (*parts)[0], (*parts)[1],
      symmetric ? ComponentAttr() : (*parts)[2], request.factorGroup,
      request.factorGroup ? parts->back() : ComponentAttr()));
  for (GetWeightOp value : uses.values)
    value.getResult().setType(type);
  for (LinearOp linear : uses.linears)
    linear.setTransposed(false);
  return success();
}

void QuantizeWeights::runOnOperation() {
  if (failed(parseOptions()))
    return signalPassFailure();
  FailureOr<Selection> selection =
      Selection::parse(where, match, [&] { return emit(); });
  if (failed(selection))
    return signalPassFailure();
  if (chosen->needsGram) {
    FailureOr<InputStatistics> opened =
        InputStatistics::open(statisticsFile(), [&] { return emit(); });
    if (failed(opened))
      return signalPassFailure();
    inputs = std::move(*opened);
  }
  for (const WeightUses &uses : collectWeightUses(getOperation())) {
    WeightOp weight = uses.weight;
    auto format = dyn_cast<DenseFormatAttr>(weight.getFormat());
    // A table, and whoever reads rows, would want the other direction.
    bool bothWays = uses.transposed && (uses.plain || uses.table);
    if (uses.linears.empty() || uses.other || bothWays || !format ||
        !getFloatKind(format.getData().getType().getElementType()) ||
        weight.getTensorType().getNumElements() == 0 ||
        !selection->contains(uses))
      continue;
    if (failed(quantize(uses)))
      return signalPassFailure();
    ++numQuantized;
  }
}
