//===- SymbolicShape.h - Sizes and shape vectors as symbols -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only place that reasons about ONNX dimension symbols. For each tensor of
// a function it knows the sizes, and for each small integer tensor the
// elements, as polynomials over symbols, so that Shape, Gather, Concat, Reshape
// chains are understood.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_ANALYSIS_SYMBOLICSHAPE_H
#define LLM_LIB_ANALYSIS_SYMBOLICSHAPE_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Analysis/SymbolicExpr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <memory>

namespace mlir::llm {

/// Sizes and elements of the values of one function of the llm dialect.
///
/// Symbols come from `llm.dims` on the arguments, where equal names are equal
/// sizes, and a name that is itself a sum or product of names ("past + seq", as
/// Optimum writes it) is read as such. A name on a result of the function that
/// the computation shows to be another expression becomes that expression
/// everywhere: so an argument's `total` turns into past + seq where the graph
/// returns a concatenation of past and new under that name. Sizes that nothing
/// is known of get symbols of their own.
///
/// Values are analysed when asked for, so a pass may ask about ops that it has
/// just created; it must not erase ops while it keeps the analysis (values are
/// keys).
class SymbolicShape {
public:
  using Exprs = SmallVector<SymbolicExpr>;
  /// Tensors of more elements have no symbolic elements.
  static constexpr int64_t kMaxElements = 256;

  explicit SymbolicShape(func::FuncOp func);

  /// One expression per dimension of `value`, a ranked tensor; all known.
  ArrayRef<SymbolicExpr> getDims(Value value);
  SymbolicExpr getDim(Value value, int64_t dim) { return getDims(value)[dim]; }
  /// Row-major elements of an integer or i1 tensor of static shape (or one that
  /// the analysis shows to be static), or null where they are not all known.
  const Exprs *getElements(Value value);
  /// The one element of an integer tensor of one element, of any rank.
  std::optional<SymbolicExpr> getScalar(Value value);
  /// All elements of an integer tensor as constants.
  std::optional<SmallVector<int64_t>> getConstants(Value value);

  /// Whether the two tensors have the same shape for all values of the symbols.
  bool sameShape(Value a, Value b);

  /// A symbol of the caller's, for the index of a loop or the like.
  SymbolicExpr createSymbol() { return fresh(); }
  /// The expression that a dimension name stands for.
  SymbolicExpr parse(StringRef name);
  std::string getName(Symbol symbol) const;
  std::string str(const SymbolicExpr &expr) const;

private:
  struct Info {
    Exprs dims;
    std::optional<Exprs> elements;
  };

  const Info &getInfo(Value value);
  void setInfo(Value value, Info info) {
    infos[value] = std::make_unique<Info>(std::move(info));
  }
  void analyze(Operation *op);
  void analyzeArgument(BlockArgument argument);
  /// What `op` says about the sizes of its result, one entry per dimension,
  /// unknown where it says nothing; empty where the op is not understood.
  Exprs inferDims(Operation *op, unsigned result);
  std::optional<Exprs> inferElements(Operation *op);
  SymbolicExpr fresh();
  Exprs inferReshape(ReshapeOp op);
  Exprs inferSlice(SliceOp op);
  SymbolicExpr inferRange(RangeOp op);
  Exprs broadcast(ArrayRef<SymbolicExpr> a, ArrayRef<SymbolicExpr> b);
  /// Names on results that the computation expresses otherwise.
  bool learnFromResults();

  func::FuncOp func;
  /// By pointer, so that references outlive later insertions.
  llvm::DenseMap<Value, std::unique_ptr<Info>> infos;
  llvm::StringMap<Symbol> symbols;
  SmallVector<std::string> names; ///< Empty for sizes without a name.
  llvm::DenseMap<Symbol, SymbolicExpr> substitutions;
};

/// The part of a dimension of size `size` that ONNX Slice takes: [start, end)
/// after clamping and counting negative bounds from the end; unknown where the
/// order of the bounds is not the same for all values of the symbols.
struct SliceBounds {
  SymbolicExpr start, end;
};
SliceBounds clampSlice(const SymbolicExpr &start, const SymbolicExpr &end,
                       const SymbolicExpr &size);

} // namespace mlir::llm

#endif // LLM_LIB_ANALYSIS_SYMBOLICSHAPE_H
