//===- fuzz_onnx_import.cpp - The importer on arbitrary files -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every file ends in a module that verifies, or in one error.
//
#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Import/ONNX/Import.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

namespace {

/// A directory of this process, with external data for models that ask for it.
struct Directory {
  Directory() {
    llvm::SmallString<128> name;
    if (llvm::sys::fs::createUniqueDirectory("fuzz-onnx", name))
      std::abort();
    path = std::string(name);
    write("w.bin", std::string(64, '\1'));
  }
  ~Directory() { std::ignore = llvm::sys::fs::remove_directories(path); }

  std::string write(llvm::StringRef file, llvm::StringRef bytes) {
    llvm::SmallString<128> full(path);
    llvm::sys::path::append(full, file);
    std::error_code error;
    llvm::raw_fd_ostream os(full, error);
    os << bytes;
    return std::string(full);
  }

  std::string path;
};

} // namespace

// LLVM's arenas poison what they have not handed out, in the code that is built
// with ASan; the shared MLIR is not, and hands out from the same arenas.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Directory directory;
  std::string model = directory.write(
      "model.onnx",
      llvm::StringRef(reinterpret_cast<const char *>(data), size));
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  unsigned errors = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diag) {
    errors += diag.getSeverity() == mlir::DiagnosticSeverity::Error;
  });
  llm::ImportOptions options;
  // Enough for every seed, and no time lost on chains of calls.
  options.maxNodes = 4096;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      llm::importONNX(model, context, options);
  if (errors != (module ? 0u : 1u)) {
    std::fprintf(stderr, "%u errors for %s\n", errors,
                 module ? "a module" : "a failure");
    std::abort();
  }
  if (module && failed(mlir::verify(*module)))
    std::abort();
  return 0;
}
