//===- PrintingFlags.h - How IR is printed to be read again -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_SUPPORT_PRINTINGFLAGS_H
#define LLM_LIB_SUPPORT_PRINTINGFLAGS_H

#include "mlir/IR/OperationSupport.h"

#include <limits>

namespace llm {

/// Whole IR, whatever the user has asked of how it is printed. Text and not
/// bytecode, which leaves out resources that only attributes of ours refer to.
inline mlir::OpPrintingFlags wholePrintingFlags() {
  return mlir::OpPrintingFlags()
      .enableDebugInfo(/*enable=*/false)
      .printGenericOpForm()
      .elideLargeElementsAttrs(std::numeric_limits<int64_t>::max())
      .elideLargeResourceString(std::numeric_limits<int64_t>::max());
}

} // namespace llm

#endif // LLM_LIB_SUPPORT_PRINTINGFLAGS_H
