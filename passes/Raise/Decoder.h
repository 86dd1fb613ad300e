//===- Decoder.h - Parts of --llm-raise-decoder -----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass goes in three steps, and leaves the module alone when one of them
// refuses: recognise (roles of arguments and results, cache pairs, masks,
// positions), write every op over a list of tokens into a new function, cut
// that function into layers.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_RAISE_DECODER_H
#define LLM_PASSES_RAISE_DECODER_H

#include "dialects/KV/IR/KVDialect.h"
#include "passes/Raise/Utils.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::llm {

/// Why a graph is no decoder, and the op that shows it (null: the function).
struct Refusal {
  Operation *op = nullptr;
  std::string reason;
};

/// One attention with its cache, whichever op spells it.
struct CachedAttention {
  Operation *op = nullptr;
  Value query, key, value;  ///< [batch, seq, heads * size]
  Value pastKey, pastValue; ///< Arguments of the function, or null.
  Value sink;               ///< Constant logits per head, or null.
  Value cosTable, sinTable; ///< Where the op itself rotates.
  bool smooth = false;      ///< A sink of zeros.
  bool interleaved = false;
  bool keysRotated = false;
  int64_t numHeads = 0, kvHeads = 0, keySize = 0, valueSize = 0, window = 0;
  double scale = 0, softcap = 0;
  int64_t group = 0, layer = 0; ///< Place in the cache.
};

/// The roles that recognition found.
struct DecoderGraph {
  func::FuncOp func;
  Value logits;
  BlockArgument tokens;
  SymbolicExpr batch, seq;
  llvm::MapVector<Operation *, CachedAttention> attentions; ///< In order.
  llvm::DenseSet<Operation *> reachable; ///< Ops that compute per token.
  llvm::DenseSet<Value> constants; ///< Computed from weights and constants.
  /// Values that read the step's positions instead.
  llvm::DenseSet<Value> positions;
  int64_t vocabulary = 0;
  int64_t maxContext = 0; ///< Rows of the shortest position table; 0: no limit.
  SmallVector<kv::GroupAttr> groups;
};

/// Fills `graph` for `func`, or says why not.
LogicalResult recognizeDecoder(func::FuncOp func, SymbolicShape &shapes,
                               DecoderGraph &graph, Refusal &refusal);

/// Writes the graph over tokens as a function `name` (step, cache) -> (logits
/// of the wanted rows, cache), in front of `graph.func`.
FailureOr<func::FuncOp> buildTokenFunction(DecoderGraph &graph,
                                           SymbolicShape &shapes,
                                           StringRef name, Refusal &refusal);

/// Moves each layer of `target` into a function of its own.
LogicalResult outlineLayers(func::FuncOp target, StringRef model,
                            Refusal &refusal);

} // namespace mlir::llm

#endif // LLM_PASSES_RAISE_DECODER_H
