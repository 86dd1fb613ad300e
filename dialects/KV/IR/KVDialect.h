//===- KVDialect.h - The kv dialect ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_DIALECTS_KV_IR_KVDIALECT_H
#define LLM_DIALECTS_KV_IR_KVDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/KV/IR/KVDialect.h.inc"
#include "dialects/KV/IR/KVEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/KV/IR/KVAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/KV/IR/KVTypes.h.inc"

namespace mlir::kv {
/// Checks linear use: every cache value reachable in `op` is consumed at most
/// once, and read only before it is consumed.
LogicalResult verifyLinearUse(Operation *op);
} // namespace mlir::kv

#define GET_OP_CLASSES
#include "dialects/KV/IR/KVOps.h.inc"

#endif // LLM_DIALECTS_KV_IR_KVDIALECT_H
