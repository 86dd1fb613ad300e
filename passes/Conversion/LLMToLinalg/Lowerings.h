//===- Lowerings.h - Families of lowerings of llm ops ---------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_CONVERSION_LLMTOLINALG_LOWERINGS_H
#define LLM_PASSES_CONVERSION_LLMTOLINALG_LOWERINGS_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include "passes/Conversion/LLMToLinalg/TensorEmitter.h"

namespace mlir::llm {

/// Replaces `OpTy` by what `Fn(emitter, op, adaptor)` returns: its one result
/// (null after an error was reported), or all of them (empty likewise).
template <typename OpTy, auto Fn> struct Lowering : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TensorEmitter emitter(op, rewriter);
    auto results = Fn(emitter, op, adaptor);
    if constexpr (std::is_same_v<decltype(results), Value>) {
      if (!results)
        return failure();
      rewriter.replaceOp(op, results);
    } else {
      if (results.size() != op->getNumResults())
        return failure();
      rewriter.replaceOp(op, results);
    }
    return success();
  }
};

template <typename OpTy, auto Fn>
void addLowering(RewritePatternSet &patterns, const TypeConverter &types) {
  patterns.add<Lowering<OpTy, Fn>>(types, patterns.getContext());
}

void populateAlongAxisLowerings(RewritePatternSet &patterns,
                                const TypeConverter &types);
void populateGroupQueryAttentionLowerings(RewritePatternSet &patterns,
                                          const TypeConverter &types);
void populateAttentionLowerings(RewritePatternSet &patterns,
                                const TypeConverter &types);
void populateElementwiseLowerings(RewritePatternSet &patterns,
                                  const TypeConverter &types);
void populateReductionLowerings(RewritePatternSet &patterns,
                                const TypeConverter &types);
void populateProductLowerings(RewritePatternSet &patterns,
                              const TypeConverter &types);
void populateShapeLowerings(RewritePatternSet &patterns,
                            const TypeConverter &types);
void populateIndexingLowerings(RewritePatternSet &patterns,
                               const TypeConverter &types);
void populateMovementLowerings(RewritePatternSet &patterns,
                               const TypeConverter &types);

} // namespace mlir::llm

#endif // LLM_PASSES_CONVERSION_LLMTOLINALG_LOWERINGS_H
