//===- Matmul.cpp - Matrix products
//-----------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

using namespace mlir;

namespace llm::importer {

/// a x b with NumPy's batch rules.
static Value matmulOf(Node &n, Value a, Value b) {
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

void registerMatmul(Registry &r) {
  r.add("Gemm", {gemm, 2, 3});
  r.add("MatMul", {matmul, 2, 2});
  r.add(kMicrosoft, "FusedMatMul", {fusedMatmul, 2, 2});
}

} // namespace llm::importer
