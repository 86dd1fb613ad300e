//===- CPUTarget.h - What CPU code is generated for -------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_SUPPORT_CPUTARGET_H
#define LLM_LIB_SUPPORT_CPUTARGET_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace llm {

/// The instruction set of an x86-64 code object. Code is generated for the
/// baseline of x86-64 plus exactly `features`, so that what the runtime checks
/// is all that the code can contain.
struct CPUTarget {
  /// What was asked for, resolved: "x86-64-v3", "znver4", the host's name.
  std::string name;
  /// The processor whose timings guide instruction selection.
  std::string tune;
  /// LLVM's names, sorted. Where the processor has all of avx2, bmi2, f16c and
  /// fma: these; of avx512f, avx512bw, avx512vl, avx512dq (together),
  /// avx512vnni, avx512bf16, amx-tile, amx-int8 and amx-bf16 those that it
  /// has, but avx512bf16 only with AMX or on a Zen; avxvnni where it
  /// has no AVX-512. Else of ssse3 and sse4.1 those that it has.
  std::vector<std::string> features;

  bool has(llvm::StringRef feature) const;
  /// f32 lanes of a full register.
  int64_t vectorWidth() const {
    return has("avx512f") ? 16 : has("avx2") ? 8 : 4;
  }
  /// "+avx2,+bmi2,..." as LLVM takes it; "+sse2", which every x86-64 has, for
  /// none.
  std::string featureString() const;

  /// Resolves `mcpu`: "native", a level from "x86-64" to "x86-64-v4" or a
  /// 64-bit processor that LLVM knows. Fails on another name; `error` says so.
  static mlir::FailureOr<CPUTarget> get(llvm::StringRef mcpu,
                                        std::string &error);

  /// Resolves each of `mcpus`, the widest first. Fails where two of them are
  /// the same instruction set.
  static mlir::FailureOr<std::vector<CPUTarget>>
  getAll(llvm::ArrayRef<std::string> mcpus, std::string &error);

  /// Kept on the code module as {cpu, tune, features}, so that code generation
  /// restarts anywhere with the same target.
  void attach(mlir::ModuleOp code) const;
  /// The target that `attach` stored; reports a module without one.
  static mlir::FailureOr<CPUTarget> of(mlir::ModuleOp code);
};

/// The attribute of `attach`.
inline constexpr llvm::StringRef kCPUTargetAttr = "llm.cpu_target";

} // namespace llm

#endif // LLM_LIB_SUPPORT_CPUTARGET_H
