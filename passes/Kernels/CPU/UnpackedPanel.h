//===- UnpackedPanel.h - Codes as bytes, for many tokens --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_UNPACKEDPANEL_H
#define LLM_PASSES_KERNELS_CPU_UNPACKEDPANEL_H

#include "passes/Kernels/CPU/Emitter.h"
#include "passes/Kernels/Layouts.h"

namespace mlir::llm {

/// Part `part` of the words (i32 lanes) of a panel: four codes a lane, one to a
/// byte.
Value codesOf(Emitter &e, const Layout &layout, Value words, int64_t part);

/// The zero points of a group (ui8) at byte `offset` of a weight, as i32 lanes.
Value zeroCodes(Emitter &e, Value weight, Value offset);

/// Of the words (i32 lanes) of a panel that hold a scale and its factors:
/// factor `part` (an index), and the scale as f32.
Value factorsOf(Emitter &e, Value words, Value part);
Value scalesOf(Emitter &e, Value words);
/// Factors as 16-bit integers, in both halves of a lane or in the lower one,
/// the other one being 0.
Value factorPairsOf(Emitter &e, Value words, Value part, bool both);

/// Some groups of some registers of outputs of a panel, unpacked on the stack:
/// codes [group][word][part][vector][lane] of four bytes, scales
/// [group][vector][lane] of f32.
class UnpackedPanel {
public:
  enum class Codes {
    Plain,   ///< as they are
    Centred, ///< less their zero points, times their factors: signed
    Raised   ///< the same and 128: unsigned
  };
  /// What is not plain has less than 8 bits. `pairs`: factors are wanted in
  /// both halves of a lane.
  UnpackedPanel(Emitter &e, const Layout &layout, int64_t vectors,
                int64_t groups, Codes form, bool pairs = false);
  /// Reads groups of the panel at byte `base` of `weight`, outputs from
  /// `column` on: from `first` on those of `inputs` inputs.
  void unpack(Value weight, Value base, Value column, Value first,
              int64_t inputs);

  /// Bytes from a word of the outputs to the next one.
  int64_t lineBytes() const;
  /// The byte at which group `g` of those that are unpacked begins.
  Value lineOf(Value g) { return e.muli(g, words * lineBytes()); }
  /// The codes of a word, a register of those at byte `line`.
  Value codes(Value line, int64_t part, int64_t vector);
  /// All codes.
  Value bytes() const { return unpacked; }
  Value scale(Value g, int64_t vector) {
    return scale(g, e.idx(vector * e.width()));
  }
  /// A register from output `column` on.
  Value scale(Value g, Value column);
  /// Factor `part` of all groups' that are unpacked, as `factorPairsOf` gives
  /// it; where codes are plain.
  Value factorPairs(Value part, int64_t vector);

private:
  /// Group `g` of the panel, to place `to`.
  void unpackGroup(Value weight, Value base, Value column, Value g, Value to,
                   int64_t length);
  /// A register of scales, of those at byte `at`.
  Value loadScales(Value weight, Value at);
  /// `count` words of codes from byte `source` on, less `zeros`, to `target`.
  void unpackWords(Value weight, Value source, Value target, Value count,
                   ArrayRef<Value> zeros);
  /// The same times factor `part` of the words at byte `factorsAt`.
  void multiplyWords(Value weight, Value source, Value target, Value count,
                     Value factorsAt, Value part);
  /// The factors of a group of `length` inputs, of the words at byte `at`, to
  /// those of place `to`.
  void unpackFactors(Value weight, Value at, Value to, int64_t length);
  void forWords(
      Value weight, Value source, Value target, Value count,
      function_ref<Value(Value words, int64_t part, int64_t vector)> codes);
  Emitter &e;
  const Layout &layout;
  int64_t vectors, words; ///< of outputs; of a group
  int64_t scaleBytes;     ///< of an output's scale, in the panel
  Codes form;
  bool pairs;
  Value unpacked, scales, factors;
};

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_UNPACKEDPANEL_H
