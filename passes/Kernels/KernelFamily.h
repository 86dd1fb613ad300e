//===- KernelFamily.h - Generators of kernels, by target and family -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/formats/kernel-families.md is the contract of every family.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_KERNELFAMILY_H
#define LLM_PASSES_KERNELS_KERNELFAMILY_H

#include "dialects/RT/IR/RTDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace mlir::llm {

/// What a generator may know of the machine.
struct KernelTarget {
  std::string name;                  ///< "cpu", "cuda", "cuda-emulator"
  std::string arch;                  ///< a CPU name, "sm_80"
  int64_t vectorWidth = 0;           ///< CPU: f32 lanes of a register
  std::vector<std::string> features; ///< CPU: what code may use

  bool has(StringRef feature) const;
  /// Whether vectors of pairs of bf16 are multiplied faster than f32, as they
  /// are not where there are tiles, too.
  bool multipliesPairs() const;
};

/// Where a generator puts its functions and says which variants there are.
class KernelBuilder {
public:
  KernelBuilder(rt::KernelOp kernel, Operation *code,
                const KernelTarget &target)
      : kernelOp(kernel), code(code), machine(target) {}

  rt::KernelOp kernel() const { return kernelOp; }
  const KernelTarget &target() const { return machine; }
  /// The symbol table (builtin.module, gpu.module) that functions go into.
  Operation *codeModule() const { return code; }

  /// A name for a function, from the kernel's and `suffix`, that the code
  /// module does not have yet.
  std::string functionName(StringRef suffix) const;

  /// Appends an rt.variant that runs `entry` where all `ranges` hold. The first
  /// match wins; together they cover every value (the verifier proves it).
  rt::VariantOp addVariant(StringRef entry,
                           ArrayRef<rt::RangeAttr> ranges = {});

  /// GPU: the blocks that a dispatch of the kernel launches, set on every
  /// dispatch. On the CPU the work items are the family's.
  void setGrid(rt::ExprAttr blocks) { gridBlocks = blocks; }
  rt::ExprAttr grid() const { return gridBlocks; }

  /// Parameters of the kernel. A missing one, or one out of [low, high], is
  /// reported at the kernel.
  FailureOr<int64_t> getInt(StringRef name, int64_t low = 1,
                            int64_t high = int64_t(1) << 40) const;
  FailureOr<double> getFloat(StringRef name) const;
  /// f32, f16 or bf16.
  FailureOr<Type> getFloatType(StringRef name) const;
  /// What a cache holds: f32, f16, bf16, or codes: i8, f8E4M3FN, f8E5M2.
  FailureOr<Type> getCacheType(StringRef name) const;
  /// Absent is false.
  bool getBool(StringRef name) const;
  /// The symbol of the rows: parameter `rows`, "T" where absent.
  StringRef rowSymbol() const;

private:
  rt::KernelOp kernelOp;
  Operation *code;
  const KernelTarget &machine;
  rt::ExprAttr gridBlocks;
};

/// Emits the functions of `builder.kernel()` and its variants, or reports why
/// it cannot.
using KernelGenerator = LogicalResult (*)(KernelBuilder &builder);

/// Generators of one process run; built by the `populate` functions, so that
/// two compilations do not see each other.
class KernelRegistry {
public:
  void add(StringRef target, StringRef family, KernelGenerator generator);
  /// Null where the target has no such family.
  KernelGenerator lookup(StringRef target, StringRef family) const;

private:
  llvm::StringMap<llvm::StringMap<KernelGenerator>> generators;
};

/// Families of target "cpu".
void populateCPUKernels(KernelRegistry &registry);
/// Families of targets "cuda" and "cuda-emulator".
void populateCUDAKernels(KernelRegistry &registry);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_KERNELFAMILY_H
