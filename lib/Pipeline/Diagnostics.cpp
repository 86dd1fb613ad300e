//===- Diagnostics.cpp - How the tools print diagnostics ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "runtime/core/Printable.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace llm {

/// The file (with line and column, where there are any) and the ONNX node that
/// a location names.
static std::string describe(Location loc) {
  std::string file, node;
  loc->walk([&](Location inner) {
    if (auto position = dyn_cast<FileLineColLoc>(inner);
        position && file.empty()) {
      file = position.getFilename().str();
      if (position.getLine() != 0)
        file += ":" + std::to_string(position.getLine()) + ":" +
                std::to_string(position.getColumn());
      file += ": ";
    } else if (auto name = dyn_cast<NameLoc>(inner); name && node.empty()) {
      node = "node '" + name.getName().str() + "': ";
    }
    return WalkResult::advance();
  });
  return file + node;
}

ToolDiagnostics::ToolDiagnostics(MLIRContext &context)
    : handler(&context, [this](Diagnostic &diagnostic) {
        auto print = [](const char *severity, const Diagnostic &d) {
          llvm::errs() << runtime::printable(describe(d.getLocation()))
                       << severity << ": " << runtime::printable(d.str())
                       << "\n";
        };
        switch (diagnostic.getSeverity()) {
        case DiagnosticSeverity::Error:
          // What follows is its consequence: a parser adds an error for each
          // level that it returns through.
          if (++errors > 1)
            return success();
          print("error", diagnostic);
          break;
        case DiagnosticSeverity::Warning:
          print("warning", diagnostic);
          break;
        case DiagnosticSeverity::Note:
          print("note", diagnostic);
          break;
        case DiagnosticSeverity::Remark:
          // Remarks explain decisions; the tools state the ones that
          // matter themselves.
          return success();
        }
        for (const Diagnostic &note : diagnostic.getNotes())
          print("note", note);
        return success();
      }) {}

} // namespace llm
