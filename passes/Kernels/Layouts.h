//===- Layouts.h - How packed weights lie in memory -------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layout is a dictionary on rt.buffer and in a kernel's params: {kind, n, k,
// type} and, where the weight has affine groups, {bits, group_size,
// scale_type, zero_type}; `transposed` where a dense weight's symbol is [k, n].
// It says everything about the bytes but their values.
//
//   rows          n rows of k elements of `type`, row major.
//   panel         [ceildiv(n, 32)][k][32] elements of `type`; output v of panel
//                 p is row 32p + v of the weight. Missing outputs are zero.
//   panel_pairs   [ceildiv(n, 32)][ceildiv(k, 2)][32][2] elements of bf16: both
//                 inputs of a pair side by side, as a dot product of bf16 pairs
//                 takes them. The second one is zero where k is odd.
//   panel_affine  [ceildiv(n, 32)] panels of groups. A group of g inputs (the
//                 last one may be short) is ceildiv(g, 32 / bits) words per
//                 output, [word][32] little-endian u32, then [32] scales, then
//                 [32] zeros where there are any. Word w of an output holds the
//                 codes of the inputs w * (32 / bits) + 4 * i + j at the bits
//                 8 * j + bits * i on: byte j takes every fourth input, so that
//                 a mask leaves four codes in the bytes of a dot product. Codes
//                 beyond the group are zero. Panels are padded to 64 bytes.
//                 Where factors split the groups (factor_group), one u32 per
//                 output takes the place of its scale: factor i, two's
//                 complement, at the bits 5 * i to 5 * i + 4, those that are
//                 missing being zero, and the scale at the bits 20 to 31: the
//                 bits 17 to 28 of the f32 scale * 2^-96.
//   gpu_affine    int4 for warps, scales and zeros in f32; see
//                 passes/Kernels/CUDA/GPUAffineLayout.h.
//   rows_affine   per row: codes as stored (low bits first, ceildiv(k *
//                 bits, 8) bytes, padded to 4), f32 scales [groups], f32 zeros
//                 [groups]; padded to 64 bytes.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_LAYOUTS_H
#define LLM_PASSES_KERNELS_LAYOUTS_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Support/WeightData.h"
#include "passes/Kernels/CUDA/GPUAffineLayout.h"

namespace mlir::llm {

/// Outputs of a panel: two AVX-512 registers, four of AVX2.
inline constexpr int64_t kPanelBlock = 32;

/// Most outputs of a linear that share a scale where it writes int8.
inline constexpr int64_t kMaxItemOutputs = 256;

/// A layout dictionary, taken apart.
struct Layout {
  enum class Kind {
    Rows,
    Panel,
    PanelAffine,
    RowsAffine,
    GPUAffine,
    PanelPairs
  };
  Kind kind = Kind::Rows;
  int64_t n = 1;           ///< outputs, or rows of a table
  int64_t k = 1;           ///< inputs, or elements of a row
  Type type;               ///< f32, f16, bf16 of the elements (rows, panel)
  bool transposed = false; ///< the weight's symbol is [k, n]
  // Affine groups.
  int64_t bits = 0;
  int64_t groupSize = 0;
  int64_t factorGroup = 0; ///< inputs that share a factor; 0: there are none
  Type scaleType;          ///< f32, f16 or bf16
  Type zeroType; ///< null: 2^(bits-1); ui8: codes; else the scales' type

  bool isAffine() const {
    return kind == Kind::PanelAffine || kind == Kind::RowsAffine ||
           kind == Kind::GPUAffine;
  }
  bool isPanel() const {
    return kind == Kind::Panel || kind == Kind::PanelAffine ||
           kind == Kind::PanelPairs;
  }
  int64_t panels() const;
  int64_t groups() const;
  /// Whether affine groups can be summed with int8 inputs: whole words, and
  /// sums of 255 * 127 * inputs that fit into int32.
  bool takesInt8() const {
    return groupSize % wordInputs() == 0 &&
           std::min(groupSize, k) <= kMaxInt8Group;
  }
  static constexpr int64_t kMaxInt8Group = 65536;
  bool hasFloatZeros() const {
    return zeroType && !zeroType.isUnsignedInteger(8);
  }
  /// Where there are no zeros, 2^(bits-1).
  int64_t commonZero() const { return int64_t(1) << (bits - 1); }
  /// Pairs of inputs, the last one perhaps half.
  int64_t pairs() const { return (k + 1) / 2; }
  /// Where the field of factor `i` begins, and how wide one is; the first bit
  /// of a scale beside factors, and of what it has of an f32 times 2^-96.
  static int64_t factorBit(int64_t i) { return kFactorBits * i; }
  static constexpr int64_t kFactorBits = 5;
  static constexpr int64_t kScaleBit = 20, kScaleF32Bit = 17;
  static constexpr float kScaleUnit = 0x1p-96f;
  /// Factors of a whole group.
  int64_t partsOfGroup() const { return groupSize / factorGroup; }
  /// Inputs whose sum `quantize_rows` writes for this weight.
  int64_t sumGroup() const { return factorGroup ? factorGroup : groupSize; }
  /// Such sums of a row.
  int64_t sums() const { return (k + sumGroup() - 1) / sumGroup(); }
  /// Inputs of group `g`.
  int64_t groupLength(int64_t g) const;
  /// Inputs per u32 word.
  int64_t wordInputs() const { return 32 / bits; }
  /// Bytes of the codes of a group of `length` inputs, in a panel.
  int64_t codeBytes(int64_t length) const;
  /// Bytes of a panel's group: codes, scales, zeros.
  int64_t groupBytes(int64_t length) const;
  /// Bytes from one panel (affine) to the next.
  int64_t panelBytes() const;
  /// Of a rows_affine row: bytes of the codes, and of all.
  int64_t rowCodeBytes() const;
  int64_t rowBytes() const;
  /// The sizes of a gpu_affine weight.
  GPUAffineLayout gpuAffine() const;
  /// Bytes of the whole, a product that cannot overflow once `parse` passed.
  int64_t size() const;
  /// What an rt.buffer of it holds: `type`, or i8 where it has affine groups.
  Type elementType(MLIRContext *context) const;
  int64_t elements() const;

  /// Reports through `emitError` what is missing, unknown or too large.
  static FailureOr<Layout> parse(DictionaryAttr dict,
                                 function_ref<InFlightDiagnostic()> emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
};

/// Bytes from one row of int8 codes (`quantize_rows`) to the next: the codes,
/// up to 16 zeros to fill the last word, then what makes it an odd number of
/// cache lines, so that the rows that a tile reads at once do not fall into the
/// same sets of a cache.
int64_t codeRowStride(int64_t k);
/// The same for rows of bf16 (`cast_rows`), in elements.
int64_t pairRowStride(int64_t k);

/// Bytes that `layout` takes; a layout that `Layout::parse` accepts.
int64_t packedSize(DictionaryAttr layout);

/// Fills `out`, of packedSize(layout) bytes, with `weight`. Floats are rounded
/// to the layout's type (to nearest even). Reports components that cannot be
/// read or do not fit.
LogicalResult packWeight(WeightOp weight, DictionaryAttr layout,
                         MutableArrayRef<char> out,
                         ::llm::WeightFiles *files = nullptr);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_LAYOUTS_H
