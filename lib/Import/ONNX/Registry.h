//===- Registry.h - The supported operators ---------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A further operator is one function in its family's file and one line in that
// file's register function.
//
#ifndef LLM_LIB_IMPORT_ONNX_REGISTRY_H
#define LLM_LIB_IMPORT_ONNX_REGISTRY_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"

#include <cstdint>
#include <limits>

namespace llm::importer {

class Node;

inline constexpr llvm::StringLiteral kMicrosoft = "com.microsoft";
/// Of ai.onnx: what the operator importers were written to.
inline constexpr int64_t kMinOpset = 7, kMaxOpset = 28;
inline constexpr unsigned kAny = std::numeric_limits<unsigned>::max();

struct Operator {
  mlir::LogicalResult (*import)(Node &);
  /// Inputs that must be there, and how many there can be.
  unsigned minInputs, maxInputs;
  unsigned maxOutputs = 1;
  /// The operator-set versions that the importer knows.
  int64_t since = kMinOpset, until = std::numeric_limits<int64_t>::max();
};

class Registry {
public:
  /// All operators of all families.
  Registry();

  void add(llvm::StringRef name, Operator op) { add("", name, op); }
  void add(llvm::StringRef domain, llvm::StringRef name, Operator op);
  /// Null where the operator, or this version of it, is not supported.
  const Operator *find(llvm::StringRef domain, llvm::StringRef name,
                       int64_t version) const;
  /// The versions of an operator that are supported ("13 to 22"), or "".
  std::string versions(llvm::StringRef domain, llvm::StringRef name) const;

private:
  llvm::StringMap<llvm::SmallVector<Operator, 1>> operators;
};

void registerAttention(Registry &registry);
void registerControl(Registry &registry);
void registerElementwise(Registry &registry);
void registerIndexing(Registry &registry);
void registerMatmul(Registry &registry);
void registerMovement(Registry &registry);
void registerNormalization(Registry &registry);
void registerQuantization(Registry &registry);
void registerReduction(Registry &registry);
void registerShape(Registry &registry);

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_REGISTRY_H
