//===- RTDialect.h - The rt dialect ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_DIALECTS_RT_IR_RTDIALECT_H
#define LLM_DIALECTS_RT_IR_RTDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/RT/IR/RTDialect.h.inc"
#include "dialects/RT/IR/RTEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/RT/IR/RTAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/RT/IR/RTTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/RT/IR/RTOps.h.inc"

#endif // LLM_DIALECTS_RT_IR_RTDIALECT_H
