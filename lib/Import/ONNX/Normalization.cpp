//===- Normalization.cpp - Normalizations
//-----------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

using namespace mlir;

namespace llm::importer {

/// The scale and the bias of a norm must fit the normalized axes.
static bool fits(Node &n, Value x, Value parameter, int64_t axis,
                 StringRef what) {
  ArrayRef<int64_t> tail = Node::shape(x).drop_front(axis);
  FailureOr<SmallVector<int64_t>> shape =
      ir::broadcastShapes(tail, Node::shape(parameter));
  bool ok = succeeded(shape) && shape->size() == tail.size();
  for (size_t i = 0; ok && i < tail.size(); ++i)
    ok = ShapedType::isDynamic(tail[i]) || (*shape)[i] == tail[i];
  if (!ok)
    n.error() << "the " << what << " of type " << parameter.getType()
              << " does not fit " << x.getType() << " from axis " << axis
              << " on";
  return ok;
}

static Value rmsNormOf(Node &n, Value x, Value gamma, int64_t axis,
                       double epsilon) {
  int64_t from = n.axis(axis, Node::type(x).getRank());
  if (n.hasFailed() || !fits(n, x, gamma, from, "scale"))
    return x;
  return n.make<ir::RMSNormOp>(x.getType(), x, gamma, n.i64(axis),
                               n.f64(epsilon));
}

static Value layerNormOf(Node &n, Value x, Value gamma, Value beta,
                         int64_t axis, double epsilon) {
  int64_t from = n.axis(axis, Node::type(x).getRank());
  if (n.hasFailed() || !fits(n, x, gamma, from, "scale") ||
      (beta && !fits(n, x, beta, from, "bias")))
    return x;
  return n.make<ir::LayerNormOp>(x.getType(), x, gamma, beta, n.i64(axis),
                                 n.f64(epsilon));
}

/// Statistics are computed in f32, which is what stash_type 1 asks for.
static bool stashesFloat(Node &n) {
  if (n.intAttr("stash_type", 1) == 1)
    return true;
  n.error() << "only the stash_type 1 (float) is supported";
  return false;
}

static LogicalResult rmsNorm(Node &n) {
  int64_t axis = n.intAttr("axis", -1);
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  if (!stashesFloat(n) || !n.isFloat(0) || !n.isFloat(1))
    return failure();
  Value x = n.in(0), y = rmsNormOf(n, x, n.in(1), axis, epsilon);
  n.set(0, y);
  return success();
}

/// The mean and the inverse deviation from `axis` on, in f32.
static std::pair<Value, Value> statisticsOf(Node &n, Value x, int64_t axis,
                                            double epsilon) {
  Type f32 = n.builder.getF32Type();
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq(axis, Node::type(x).getRank()));
  Shape shape(Node::shape(x).take_front(axis));
  shape.append(axes.size(), 1);
  auto mean = [&](Value value) {
    return n.make<ir::ReduceOp>(
        n.makeType(shape, f32),
        ir::ReductionKindAttr::get(n.graph.context, ir::ReductionKind::mean),
        value, n.builder.getDenseI64ArrayAttr(axes), n.unit(true));
  };
  Value wide = n.cast(x, f32), average = mean(wide);
  Value distance = n.binary<ir::SubOp>(wide, average);
  Value variance = mean(n.binary<ir::MulOp>(distance, distance));
  Value shifted = n.binary<ir::AddOp>(variance, n.constantScalar(f32, epsilon));
  return {average, n.unary<ir::ReciprocalOp>(n.unary<ir::SqrtOp>(shifted))};
}

static LogicalResult layerNorm(Node &n) {
  int64_t axis = n.intAttr("axis", -1);
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  if (!stashesFloat(n) || !n.isFloat(0) || !n.isFloat(1))
    return failure();
  Value x = n.in(0);
  n.set(0, layerNormOf(n, x, n.in(1), n.has(2) ? n.in(2) : Value(), axis,
                       epsilon));
  if (n.hasFailed() || !(n.wants(1) || n.wants(2)))
    return success(!n.hasFailed());
  auto [mean, inverse] =
      statisticsOf(n, x, n.axis(axis, Node::type(x).getRank()), epsilon);
  n.set(1, mean);
  n.set(2, inverse);
  return success();
}

/// x + skip (+ bias), normalized; the sum is output 3.
template <bool simplified> static LogicalResult skipNorm(Node &n) {
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  if (!n.isFloat(0) || !n.sameElements(0, 1) || !n.sameElements(0, 2))
    return failure();
  constexpr unsigned kBias = simplified ? 3 : 4;
  Value sum = n.binary<ir::AddOp>(n.in(0), n.in(1));
  if (n.has(kBias))
    sum = n.binary<ir::AddOp>(sum, n.in(kBias));
  if (Node::type(sum).getRank() == 0)
    return n.error() << "a scalar cannot be normalized";
  Value beta = !simplified && n.has(3) ? n.in(3) : Value();
  n.set(0, simplified ? rmsNormOf(n, sum, n.in(2), -1, epsilon)
                      : layerNormOf(n, sum, n.in(2), beta, -1, epsilon));
  n.set(3, sum);
  return success();
}

void registerNormalization(Registry &r) {
  // ONNX Runtime puts its operators into the default domain as well, for any
  // version of it.
  r.add("LayerNormalization", {layerNorm, 2, 3, 3});
  r.add("RMSNormalization", {rmsNorm, 2, 2, 1, 23});
  r.add("SimplifiedLayerNormalization", {rmsNorm, 2, 2, 2});
  r.add(kMicrosoft, "SimplifiedLayerNormalization", {rmsNorm, 2, 2, 2});
  r.add(kMicrosoft, "SkipLayerNormalization", {skipNorm<false>, 3, 5, 4});
  r.add(kMicrosoft, "SkipSimplifiedLayerNormalization",
        {skipNorm<true>, 3, 4, 4});
}

} // namespace llm::importer
