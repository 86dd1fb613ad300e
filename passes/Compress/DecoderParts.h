//===- DecoderParts.h - Some layers of a decoder, to be run -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_DECODERPARTS_H
#define LLM_PASSES_COMPRESS_DECODERPARTS_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::llm {

/// A tensor of the model that a part hands out, [rows, width] in f32.
struct Tap {
  Value value;
  std::string name;
};

/// A decoder as a chain of layers: what lies before the first, the layers, and
/// what lies behind the last. A decoder without layers is all behind.
class DecoderParts {
public:
  /// Names of the hidden state where a part begins and where it ends.
  static constexpr StringLiteral kHidden = "hidden";

  /// The decoder @target. Reports through the module where there is none, or
  /// where a layer takes other than the result of the one before, or runs
  /// twice.
  static FailureOr<DecoderParts> get(ModuleOp module);

  ModuleOp getModule() const { return module; }
  func::FuncOp getModel() const { return model; }
  int64_t numLayers() const { return static_cast<int64_t>(layers.size()); }
  func::FuncOp getLayer(int64_t index) const { return layers[index]; }
  /// Elements of the hidden state between layers.
  int64_t hiddenWidth() const;
  /// The layer that an op lies in; -1 and numLayers() before the first and
  /// behind the last.
  int64_t layerOf(Operation *op) const;

  /// A module with layers [begin, end), what lies before the first if begin is
  /// 0, and what lies behind the last if `tail`, which hands out `taps`, as
  /// far as they lie in it, and, if `hidden`, the last hidden state. It takes
  /// the first one in where begin is not 0.
  OwningOpRef<ModuleOp> extract(int64_t begin, int64_t end, bool tail,
                                bool hidden, ArrayRef<Tap> taps) const;

  /// A module with the function of a layer and its weights, for passes to run
  /// on.
  OwningOpRef<ModuleOp> extractLayer(int64_t index) const;
  /// Takes the weights and the function of such a module in their place.
  LogicalResult replaceLayer(int64_t index, ModuleOp changed);

private:
  class Builder;
  explicit DecoderParts(ModuleOp module) : module(module) {}
  LogicalResult find();

  ModuleOp module;
  func::FuncOp model;
  SmallVector<func::CallOp> calls;
  SmallVector<func::FuncOp> layers;
};

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_DECODERPARTS_H
