//===- DecodeDialect.h - The decode dialect ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_DIALECTS_DECODE_IR_DECODEDIALECT_H
#define LLM_DIALECTS_DECODE_IR_DECODEDIALECT_H

#include "dialects/KV/IR/KVDialect.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/Decode/IR/DecodeDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Decode/IR/DecodeTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Decode/IR/DecodeOps.h.inc"

#endif // LLM_DIALECTS_DECODE_IR_DECODEDIALECT_H
