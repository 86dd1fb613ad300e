//===- Matmul.cpp - Matrix products
//-----------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Matmul.h"

using namespace mlir;

namespace llm::importer {

Value matmulOf(Node &n, Value a, Value b) {
  Shape x(Node::shape(a)), y(Node::shape(b));
  if (x.empty() || y.empty()) {
    n.error() << "a scalar has no matrix product";
    return a;
  }
  bool vectorA = x.size() == 1, vectorB = y.size() == 1;
  if (vectorA)
    x.insert(x.begin(), 1);
  if (vectorB)
    y.push_back(1);
  int64_t k = x.back(), l = y[y.size() - 2];
  if (k != l && !ShapedType::isDynamic(k) && !ShapedType::isDynamic(l)) {
    n.error() << "the inner dimensions of " << a.getType() << " and "
              << b.getType() << " differ";
    return a;
  }
  Shape shape = n.broadcast(ArrayRef(x).drop_back(2), ArrayRef(y).drop_back(2));
  if (!vectorA)
    shape.push_back(x[x.size() - 2]);
  if (!vectorB)
    shape.push_back(y.back());
  return n.make<ir::MatMulOp>(n.makeType(shape, Node::element(a)), a, b);
}

static LogicalResult matmul(Node &n) {
  if (!n.isNumeric(0) || !n.sameElements(0, 1))
    return failure();
  n.set(0, matmulOf(n, n.in(0), n.in(1)));
  return success();
}

/// The last two axes swapped.
static Value swapLast(Node &n, Value x) {
  int64_t rank = Node::type(x).getRank();
  if (rank < 2)
    return x;
  SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(rank));
  std::swap(perm[rank - 1], perm[rank - 2]);
  return n.transpose(x, perm);
}

static Value scale(Node &n, Value x, double factor) {
  if (factor == 1.0)
    return x;
  return n.binary<ir::MulOp>(x, n.constantScalar(Node::element(x), factor));
}

static LogicalResult gemm(Node &n) {
  double alpha = n.floatAttr("alpha", 1.0), beta = n.floatAttr("beta", 1.0);
  bool transA = n.flag("transA"), transB = n.flag("transB");
  if (!n.isNumeric(0) || !n.sameElements(0, 1) || !n.hasRank(0, 2, 2) ||
      !n.hasRank(1, 2, 2) || (n.has(2) && !n.sameElements(0, 2)))
    return failure();
  Value a = n.in(0), b = n.in(1), c = n.has(2) ? n.in(2) : Value();
  if (!isa<FloatType>(Node::element(a)) && (alpha != 1.0 || beta != 1.0))
    return n.error() << "integers cannot be scaled by alpha or beta";
  if (transA)
    a = swapLast(n, a);
  int64_t k = Node::shape(b)[transB ? 1 : 0];
  int64_t columns = Node::shape(b)[transB ? 0 : 1], rowK = Node::shape(a)[1];
  if (k != rowK && !ShapedType::isDynamic(k) && !ShapedType::isDynamic(rowK))
    return n.error() << "the inner dimensions of " << a.getType() << " and "
                     << b.getType() << " differ";
  auto type = n.makeType({Node::shape(a)[0], columns}, Node::element(a));
  bool biasFits =
      !c || (Node::type(c).getRank() == 1 && Node::shape(c)[0] == columns);
  // A product with a stored matrix is what llm.linear names.
  if (n.tensor(1) && alpha == 1.0 && beta == 1.0 && biasFits &&
      isa<FloatType>(Node::element(a))) {
    n.set(0, n.make<ir::LinearOp>(type, a, b, c, n.unit(!transB), n.i64(0)));
    return success();
  }
  Value y = scale(n, matmulOf(n, a, transB ? swapLast(n, b) : b), alpha);
  if (c)
    y = n.binary<ir::AddOp>(y, scale(n, c, beta));
  n.set(0, y);
  return success();
}

static LogicalResult fusedMatmul(Node &n) {
  double alpha = n.floatAttr("alpha", 1.0);
  bool transA = n.flag("transA"), transB = n.flag("transB");
  if (n.flag("transBatchA") || n.flag("transBatchB"))
    return n.error() << "transBatchA and transBatchB are not supported";
  if (!n.isFloat(0) || !n.sameElements(0, 1))
    return failure();
  Value a = n.in(0), b = n.in(1);
  n.set(0, scale(n,
                 matmulOf(n, transA ? swapLast(n, a) : a,
                          transB ? swapLast(n, b) : b),
                 alpha));
  return success();
}

/// A zero point or scale beside a matrix: one for each row becomes a column.
static Value beside(Node &n, Value parameter, bool rows) {
  Shape shape(Node::shape(parameter));
  if (!rows || shape.size() != 1 || shape[0] == 1)
    return parameter;
  shape.push_back(1);
  return n.make<ir::UnsqueezeOp>(n.makeType(shape, Node::element(parameter)),
                                 parameter,
                                 n.builder.getDenseI64ArrayAttr({1}));
}

/// The codes of input `data` less their zero points (one; or one for each row
/// of the left matrix, each column of the right one), in i32.
static Value withoutZero(Node &n, unsigned data, unsigned zero, bool rows) {
  Value x = n.in(data);
  auto type = dyn_cast<IntegerType>(Node::element(x));
  if (!type || type.getWidth() != 8) {
    n.error() << "input " << data << " is of 8-bit integers, not "
              << x.getType();
    return x;
  }
  Type i32 = n.builder.getI32Type();
  Value wide = n.cast(x, i32);
  if (!n.has(zero) || !n.sameElements(data, zero))
    return wide;
  return n.binary<ir::SubOp>(wide, n.cast(beside(n, n.in(zero), rows), i32));
}

static LogicalResult matmulInteger(Node &n) {
  Value a = withoutZero(n, 0, 2, /*rows=*/true);
  Value b = withoutZero(n, 1, 3, /*rows=*/false);
  if (n.hasFailed())
    return failure();
  n.set(0, matmulOf(n, a, b));
  return success();
}

/// y = saturate(round(a b (scale of a) (scale of b) / (scale of y)) + zero).
static LogicalResult qlinearMatmul(Node &n) {
  Value a = withoutZero(n, 0, 2, /*rows=*/true);
  Value b = withoutZero(n, 3, 5, /*rows=*/false);
  for (unsigned scale : {1, 4, 6})
    if (n.hasFailed() || !n.isFloat(scale))
      return failure();
  auto result = dyn_cast<IntegerType>(Node::element(n.in(7)));
  if (!result || result.getWidth() != 8)
    return n.error() << "input 7 is of 8-bit integers, not "
                     << n.in(7).getType();
  Type f32 = n.builder.getF32Type();
  Value product = n.cast(matmulOf(n, a, b), f32);
  Value scale = n.binary<ir::MulOp>(n.cast(beside(n, n.in(1), true), f32),
                                    n.cast(n.in(4), f32));
  scale = n.binary<ir::DivOp>(scale, n.cast(beside(n, n.in(6), true), f32));
  Value y = n.unary<ir::RoundOp>(n.binary<ir::MulOp>(product, scale));
  y = n.binary<ir::AddOp>(y, n.cast(beside(n, n.in(7), true), f32));
  if (n.hasFailed())
    return failure();
  bool isUnsigned = result.isUnsigned();
  y = n.make<ir::ClipOp>(y.getType(), y,
                         n.constantScalar(f32, isUnsigned ? 0 : -128),
                         n.constantScalar(f32, isUnsigned ? 255 : 127));
  n.set(0, n.cast(y, result));
  return success();
}

void registerMatmul(Registry &r) {
  r.add("Einsum", {einsum, 1, kAny, 1, 12});
  r.add("Gemm", {gemm, 2, 3});
  r.add("MatMul", {matmul, 2, 2});
  r.add("MatMulInteger", {matmulInteger, 2, 4, 1, 10});
  r.add("QLinearMatMul", {qlinearMatmul, 8, 8, 1, 10});
  r.add(kMicrosoft, "FusedMatMul", {fusedMatmul, 2, 2});
}

} // namespace llm::importer
