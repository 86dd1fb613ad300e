//===- ParseModule.h - IR for the analysis tests ----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TEST_UNIT_ANALYSIS_PARSEMODULE_H
#define LLM_TEST_UNIT_ANALYSIS_PARSEMODULE_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

/// A module with the function @f of `text`, and its values by the name that an
/// attribute `test.name` of their op gives them (discardable, on any op).
class ParsedModule {
public:
  explicit ParsedModule(llvm::StringRef text) {
    context.loadDialect<mlir::llm::LLMDialect, mlir::func::FuncDialect>();
    context.allowUnregisteredDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << "the test's IR does not parse";
  }
  mlir::func::FuncOp func() {
    return module->lookupSymbol<mlir::func::FuncOp>("f");
  }
  mlir::Value value(llvm::StringRef name) {
    mlir::Value found;
    module->walk([&](mlir::Operation *op) {
      auto attr = op->getAttrOfType<mlir::StringAttr>("test.name");
      if (attr && attr.getValue() == name)
        found = op->getResult(0);
    });
    EXPECT_TRUE(found) << "no op is named " << name.str();
    return found;
  }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

#endif // LLM_TEST_UNIT_ANALYSIS_PARSEMODULE_H
