//===- Planes.h - Which planes of a group belong together ------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_DIALECTS_KV_IR_PLANES_H
#define LLM_DIALECTS_KV_IR_PLANES_H

#include "dialects/KV/IR/KVDialect.h"

#include <optional>

namespace mlir::kv {

/// The index of the token plane `name` of `group`.
std::optional<unsigned> findTokenPlane(GroupAttr group, llvm::StringRef name);

/// The index of the plane that holds the scales of plane `index`: the token
/// plane "x_scale" beside the token plane "x".
std::optional<unsigned> scaleOfPlane(GroupAttr group, unsigned index);

/// Whether plane `index` is the scale of another one.
bool isScalePlane(GroupAttr group, unsigned index);

} // namespace mlir::kv

#endif // LLM_DIALECTS_KV_IR_PLANES_H
