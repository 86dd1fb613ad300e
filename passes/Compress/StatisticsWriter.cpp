//===- StatisticsWriter.cpp - Writing what calibration saw ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/StatisticsWriter.h"

#include "lib/Support/Safetensors.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <unistd.h>

namespace fs = llvm::sys::fs;

namespace mlir::llm {

static constexpr StringLiteral kKeyName = "llm.key";

/// The tensors about one weight, with their shapes.
static SmallVector<std::pair<std::string, SmallVector<int64_t>>>
tensorsOf(const WeightStatistics &about, StatisticKinds kinds) {
  SmallVector<std::pair<std::string, SmallVector<int64_t>>> tensors;
  auto add = [&](StringRef suffix, SmallVector<int64_t> shape) {
    tensors.push_back({about.weight + suffix.str(), std::move(shape)});
  };
  if (kinds.gram)
    add(".gram", {about.width, about.width});
  if (kinds.norms) {
    add(".abs_mean", {about.width});
    add(".square_mean", {about.width});
  }
  if (kinds.ranges) {
    add(".min", {about.width});
    add(".max", {about.width});
  }
  return tensors;
}

FailureOr<StatisticsWriter>
StatisticsWriter::open(ModuleOp module, StringRef path,
                       ArrayRef<WeightStatistics> weights, StatisticKinds kinds,
                       StringRef key, bool goOn) {
  StatisticsWriter writer(module, path);
  std::string header;
  ::llvm::raw_string_ostream os(header);
  uint64_t end = 0;
  SmallVector<std::pair<std::string, uint64_t>> begins;
  ::llvm::json::OStream json(os);
  json.object([&] {
    json.attributeObject("__metadata__",
                         [&] { json.attribute(kKeyName, key); });
    for (const WeightStatistics &about : weights)
      for (const auto &[name, shape] : tensorsOf(about, kinds)) {
        uint64_t bytes = sizeof(float);
        for (int64_t dim : shape)
          bytes *= static_cast<uint64_t>(dim);
        json.attributeObject(::llvm::json::fixUTF8(name), [&, &shape = shape] {
          json.attribute("dtype", "F32");
          json.attributeArray("shape", [&] {
            for (int64_t dim : shape)
              json.value(dim);
          });
          json.attributeArray("data_offsets", [&] {
            json.value(end);
            json.value(end + bytes);
          });
        });
        begins.push_back({name, end});
        end += bytes;
      }
  });
  header.append(::llvm::alignTo(8 + header.size(), 64) - 8 - header.size(),
                ' ');
  uint64_t length = header.size(), data = 8 + length;
  for (const auto &[name, begin] : begins)
    writer.offsets[name] = data + begin;
  if (std::error_code error = fs::openFileForWrite(
          path, writer.fd, goOn ? fs::CD_OpenExisting : fs::CD_CreateAlways))
    return writer.error(error.message());
  fs::file_status status;
  if (goOn) {
    if (std::error_code error = fs::status(writer.fd, status))
      return writer.error(error.message());
    if (status.getSize() != data + end)
      return writer.error("it is not as it was left; remove it");
    return writer;
  }
  if (std::error_code error = fs::resize_file(writer.fd, data + end))
    return writer.error(error.message());
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte)
    bytes += static_cast<char>(length >> (8 * byte));
  bytes += header;
  if (failed(writer.put(0, bytes.data(), bytes.size())))
    return failure();
  return writer;
}

StatisticsWriter::~StatisticsWriter() {
  if (fd >= 0)
    ::close(fd);
}

LogicalResult StatisticsWriter::put(uint64_t offset, const char *data,
                                    size_t bytes) {
  while (bytes) {
    ssize_t count = pwrite(fd, data, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return error(std::generic_category().message(count < 0 ? errno : EIO));
    data += count;
    offset += count;
    bytes -= count;
  }
  return success();
}

LogicalResult StatisticsWriter::put(StringRef tensor, ArrayRef<float> values) {
  return put(offsets.at(tensor), reinterpret_cast<const char *>(values.data()),
             values.size() * sizeof(float));
}

LogicalResult StatisticsWriter::write(StringRef weight,
                                      const InputAccumulator &inputs,
                                      StatisticKinds kinds) {
  if (kinds.gram) {
    constexpr int64_t kRows = 256;
    uint64_t offset = offsets.at((weight + ".gram").str());
    int64_t width = inputs.width();
    std::vector<float> rows(kRows * width);
    for (int64_t first = 0; first < width; first += kRows) {
      int64_t count = std::min(kRows, width - first);
      inputs.gram(first, count, rows.data());
      size_t bytes = count * width * sizeof(float);
      if (failed(
              put(offset, reinterpret_cast<const char *>(rows.data()), bytes)))
        return failure();
      offset += bytes;
    }
  }
  if (kinds.norms &&
      (failed(put((weight + ".abs_mean").str(), inputs.absMean())) ||
       failed(put((weight + ".square_mean").str(), inputs.squareMean()))))
    return failure();
  if (kinds.ranges && (failed(put((weight + ".min").str(), inputs.least())) ||
                       failed(put((weight + ".max").str(), inputs.largest()))))
    return failure();
  return success();
}

LogicalResult StatisticsWriter::close() {
  int result = ::close(std::exchange(fd, -1));
  return result == 0
             ? success()
             : LogicalResult(error(std::generic_category().message(errno)));
}

std::string readStatisticsKey(ModuleOp module, StringRef path) {
  if (!fs::exists(path))
    return {};
  // What is no such file is written over, and the reason does not matter.
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  auto file =
      ::llm::Safetensors::open(path, [&] { return module.emitError(); });
  return failed(file) ? std::string() : file->metadata(kKeyName).str();
}

} // namespace mlir::llm
