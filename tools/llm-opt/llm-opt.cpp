//===- llm-opt.cpp - The pass driver ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/Decode/IR/DecodeDialect.h"
#include "dialects/KV/IR/KVDialect.h"
#include "dialects/LLM/IR/LLMDialect.h"
#include "dialects/RT/IR/RTDialect.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<mlir::llm::LLMDialect, mlir::kv::KVDialect,
                  mlir::decode::DecodeDialect, mlir::rt::RTDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "LLM compiler pass driver\n", registry));
}
