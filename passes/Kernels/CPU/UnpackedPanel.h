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

/// Some groups of some registers of outputs of a panel, unpacked on the stack:
/// codes [group][word][part][vector][lane] of four bytes, scales
/// [group][vector][lane] of f32.
class UnpackedPanel {
public:
  /// `centred`: zero points are taken off, and the codes are signed; they have
  /// less than 8 bits.
  UnpackedPanel(Emitter &e, const Layout &layout, int64_t vectors,
                int64_t groups, bool centred = false);
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

private:
  /// Group `g` of the panel, to place `to`.
  void unpackGroup(Value weight, Value base, Value column, Value g, Value to,
                   int64_t length);
  Emitter &e;
  const Layout &layout;
  int64_t vectors, words; ///< of outputs; of a group
  bool centred;
  Value unpacked, scales;
};

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_UNPACKEDPANEL_H
