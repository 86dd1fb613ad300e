//===- SampleRunner.cpp - Samples through the parts of a decoder ----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/SampleRunner.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Support/PrintingFlags.h"
#include "lib/Support/WeightData.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "passes/Compress/DecoderParts.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <tuple>
#include <unistd.h>

namespace fs = llvm::sys::fs;

namespace mlir::llm {

SampleRunner::SampleRunner(ModuleOp module, const ::llm::ModuleRunner &runner,
                           Samples samples, const RunState &state)
    : module(module), runner(runner), samples(std::move(samples)), firsts{0},
      state(state) {
  for (const std::vector<int32_t> &sample : this->samples)
    firsts.push_back(firsts.back() + static_cast<int64_t>(sample.size()));
}

std::string SampleRunner::hiddenFile(int64_t number) const {
  return state.file("hidden." + std::to_string(number));
}

void SampleRunner::removeHidden(int64_t number) const {
  std::ignore = fs::remove(hiddenFile(number));
}

/// Reads or writes all of [data, data + bytes) at `offset`.
static LogicalResult transfer(ModuleOp module, StringRef path, int fd,
                              char *data, size_t bytes, int64_t offset,
                              bool write) {
  while (bytes) {
    ssize_t count = write ? pwrite(fd, data, bytes, offset)
                          : pread(fd, data, bytes, offset);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return module.emitError()
             << "cannot " << (write ? "write" : "read") << " '" << path << "': "
             << (count < 0 ? std::generic_category().message(errno)
                           : std::string("it ends too early"));
    data += count;
    offset += count;
    bytes -= count;
  }
  return success();
}

LogicalResult SampleRunner::run(ModuleOp part, int64_t in, int64_t out,
                                Observe observe, StringRef what) const {
  ModuleOp where = module;
  size_t longest = 0;
  for (const std::vector<int32_t> &sample : samples)
    longest = std::max(longest, sample.size());
  ::llm::RunOptions options;
  options.scratch = state.directory();
  options.context = static_cast<int64_t>(longest);
  options.chunk = std::min<int64_t>(options.context, 512);
  auto loaded = runner.load(part, options);
  if (failed(loaded))
    return failure();

  int reads = -1, writes = -1;
  ::llvm::scope_exit close([&] {
    for (int fd : {reads, writes})
      if (fd >= 0)
        ::close(fd);
  });
  std::string inFile = hiddenFile(in), outFile = hiddenFile(out);
  size_t current = 0;
  auto supply = [&](const ::llm::StepRows &rows, float *data) -> LogicalResult {
    if (reads < 0)
      if (std::error_code error = fs::openFileForRead(inFile, reads))
        return where.emitError()
               << "cannot read '" << inFile << "': " << error.message();
    int64_t bytes = rows.width * static_cast<int64_t>(sizeof(float));
    return transfer(where, inFile, reads, reinterpret_cast<char *>(data),
                    rows.rows * bytes, (firsts[current] + rows.first) * bytes,
                    /*write=*/false);
  };
  auto observeRows = [&](const ::llm::StepRows &rows,
                         const float *data) -> LogicalResult {
    if (rows.name != DecoderParts::kHidden)
      return observe(rows.name, rows.rows, rows.width, data);
    if (writes < 0)
      if (std::error_code error = fs::openFileForWrite(outFile, writes))
        return where.emitError()
               << "cannot write '" << outFile << "': " << error.message();
    int64_t bytes = rows.width * static_cast<int64_t>(sizeof(float));
    return transfer(where, outFile, writes,
                    const_cast<char *>(reinterpret_cast<const char *>(data)),
                    rows.rows * bytes, (firsts[current] + rows.first) * bytes,
                    /*write=*/true);
  };
  bool shown = ::llvm::errs().is_displayed();
  for (; current < samples.size(); ++current) {
    if (shown)
      ::llvm::errs() << "\r" << what << ", sample " << current + 1 << " of "
                     << samples.size() << " ";
    if (failed((*loaded)->run(samples[current], supply, observeRows)))
      return failure();
  }
  if (shown)
    ::llvm::errs() << "\n";
  return success();
}

/// The bytes of elements that lie in the module.
static std::string hashElements(ElementsAttr elements) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? ::llm::hashBytes(blob->getData()) : "";
  }
  if (auto dense = dyn_cast<DenseElementsAttr>(elements))
    return ::llm::hashBytes(dense.getRawData());
  return "";
}

/// All about a weight but where its bytes lie.
static void describe(WeightOp weight, ::llvm::raw_ostream &os) {
  AttrTypeReplacer placeless;
  placeless.addReplacement([](SpanAttr span) {
    return SpanAttr::get(span.getContext(), "-", 0, span.getLength(),
                         span.getHash());
  });
  os << weight.getSymName() << " " << weight.getTensorType() << " "
     << placeless.replace(weight.getFormat());
  SmallVector<ComponentAttr> parts;
  weight.getFormat().getParts(parts);
  for (ComponentAttr part : parts)
    if (auto elements = dyn_cast<ElementsAttr>(part.getSource()))
      os << " " << hashElements(elements);
}

std::string hashRun(ModuleOp module, const Samples &samples,
                    StringRef options) {
  std::string text;
  ::llvm::raw_string_ostream os(text);
  // Neither paths nor the module's own attributes, which say where things are
  // and change from one process to the next; and not as a user wants IR
  // printed.
  for (Operation &op : *module.getBody()) {
    if (auto weight = dyn_cast<WeightOp>(op))
      describe(weight, os);
    else
      op.print(os, ::llm::wholePrintingFlags().useLocalScope());
    os << "\n";
  }
  for (const std::vector<int32_t> &sample : samples) {
    for (int32_t id : sample)
      os << id << ",";
    os << "\n";
  }
  os << options;
  return ::llm::hashBytes(ArrayRef<char>(text.data(), text.size()));
}

} // namespace mlir::llm
