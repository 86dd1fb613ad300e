//===- Artifact.cpp - Reading a .llmx file -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Artifact.h"

#include "runtime/artifact/Checksum.h"
#include "runtime/artifact/PassSeconds.h"
#include "runtime/core/Limits.h"
#include "runtime/core/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <google/protobuf/stubs/logging.h>
#include <sys/xattr.h>

namespace llm::runtime {

namespace {

/// Of bytes that equal their neighbours the first one speaks for all; gaps come
/// to megabytes, and memcmp takes them by the vector.
bool allZero(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes.front() == std::byte(0) &&
          std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

} // namespace

Expected<std::shared_ptr<const Artifact>>
Artifact::open(const std::string &path, int threads,
               const Meanwhile &meanwhile) {
  LLM_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  std::span<const std::byte> bytes = file.bytes();
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<Artifact> artifact,
                       create(std::move(file), bytes,
                              threads ? threads : availableThreads(), meanwhile)
                           .withContext(path));
  artifact->readPassSeconds(path);
  return std::shared_ptr<const Artifact>(std::move(artifact));
}

Expected<std::shared_ptr<const Artifact>>
Artifact::fromBytes(std::span<const std::byte> bytes) {
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<Artifact> artifact,
                       create(MappedFile(), bytes, /*threads=*/1, {}));
  return std::shared_ptr<const Artifact>(std::move(artifact));
}

Expected<std::shared_ptr<Artifact>>
Artifact::create(MappedFile file, std::span<const std::byte> bytes, int threads,
                 const Meanwhile &meanwhile) {
  return catchExceptions([&]() -> Expected<std::shared_ptr<Artifact>> {
    std::shared_ptr<Artifact> artifact(new Artifact());
    artifact->file = std::move(file);
    artifact->bytes = bytes;
    llm_artifact_header header;
    LLM_RETURN_IF_ERROR(artifact->readHeader(header));
    LLM_RETURN_IF_ERROR(artifact->readManifest(header));
    LLM_RETURN_IF_ERROR(verifyManifest(artifact->contents, bytes.size()));
    LLM_RETURN_IF_ERROR(
        artifact->verifyGaps(sizeof(header) + header.manifest_size));
    LLM_RETURN_IF_ERROR(artifact->verifyPayloads());
    LLM_RETURN_IF_ERROR(artifact->verifyWeights(threads, meanwhile));
    artifact->listUnsettled();
    return artifact;
  });
}

Status Artifact::readHeader(llm_artifact_header &header) const {
  if (bytes.size() < sizeof(header.magic) ||
      std::memcmp(bytes.data(), LLM_ARTIFACT_MAGIC, sizeof(header.magic)) != 0)
    return Status::invalidInput("not an .llmx artifact (wrong magic)");
  if (bytes.size() < sizeof(header))
    return Status::invalidInput("the artifact is truncated: it has " +
                                std::to_string(bytes.size()) +
                                " bytes, less than its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  bool intact =
      checksum(bytes.first(sizeof(header) - 8)) == header.header_checksum;
  // A later format may have its header checksum elsewhere: the version is
  // named even where the checksum is wrong.
  if (header.version != LLM_ARTIFACT_VERSION)
    return Status::unsupported(
        "artifact format version " + std::to_string(header.version) +
        ", but this runtime reads version " +
        std::to_string(LLM_ARTIFACT_VERSION) +
        ": compile the model again with the llm-compile of this release, or "
        "use the llm-run that belongs to the artifact" +
        (intact ? ""
                : " (the header's checksum is wrong as well: the file may be "
                  "damaged)"));
  if (!intact)
    return Status::invalidInput(
        "the artifact is damaged: the checksum of its header is wrong");
  if (header.file_size != bytes.size())
    return Status::invalidInput(
        (bytes.size() < header.file_size ? "the artifact is truncated: "
                                         : "the artifact is damaged: ") +
        std::string("the file has ") + std::to_string(bytes.size()) +
        " bytes, its header says " + std::to_string(header.file_size));
  if (header.flags != 0 || header.reserved[0] != 0 || header.reserved[1] != 0)
    return Status::unsupported("the artifact's header has fields set that this "
                               "runtime does not know");
  return Status::success();
}

Status Artifact::readManifest(const llm_artifact_header &header) {
  if (header.manifest_size > bytes.size() - sizeof(header))
    return Status::invalidInput("the manifest does not lie in the file");
  if (header.manifest_size > maxManifestBytes)
    return Status::unsupported("the manifest has " +
                               formatSize(header.manifest_size) +
                               ", more than " + formatSize(maxManifestBytes));
  std::span<const std::byte> message =
      bytes.subspan(sizeof(header), header.manifest_size);
  if (checksum(message) != header.manifest_checksum)
    return Status::invalidInput(
        "the artifact is damaged: the checksum of its manifest is wrong");
  // Protobuf would print; the failure is reported by us.
  google::protobuf::LogSilencer silencer;
  if (!contents.ParseFromArray(message.data(),
                               static_cast<int>(message.size())))
    return Status::invalidInput("the manifest is not a valid message");
  return Status::success();
}

Status Artifact::verifyGaps(uint64_t manifestEnd) const {
  uint64_t position = manifestEnd;
  auto verifyGap = [&](uint64_t end) -> Status {
    if (end < position)
      return Status::invalidInput("a payload overlaps what is before it");
    if (!allZero(bytes.subspan(position, end - position)))
      return Status::invalidInput(
          "the artifact is damaged: there are bytes between its sections");
    return Status::success();
  };
  for (const artifact::Payload &payload : contents.payloads()) {
    LLM_RETURN_IF_ERROR(verifyGap(payload.offset()));
    position = payload.offset() + payload.size();
  }
  return verifyGap(bytes.size());
}

static Status damaged(const artifact::Payload &payload) {
  return Status::invalidInput(
      "the artifact is damaged: the checksum of payload '" + payload.name() +
      "' is wrong");
}

Status Artifact::verifyPayloads() const {
  for (const artifact::Payload &payload : contents.payloads())
    if (payload.kind() != artifact::Payload::WEIGHTS &&
        payloadChecksum(bytes.subspan(payload.offset(), payload.size())) !=
            payload.checksum())
      return damaged(payload);
  return Status::success();
}

Status Artifact::verifyWeights(int threads, const Meanwhile &meanwhile) const {
  std::vector<std::span<const std::byte>> blocks;
  for (const artifact::Payload &payload : contents.payloads())
    if (payload.kind() == artifact::Payload::WEIGHTS)
      for (uint64_t at = 0; at < payload.size(); at += LLM_CHECKSUM_BLOCK)
        blocks.push_back(bytes.subspan(
            payload.offset() + at,
            std::min<uint64_t>(LLM_CHECKSUM_BLOCK, payload.size() - at)));
  std::vector<uint64_t> sums(blocks.size());
  std::exception_ptr thrown;
  // The first item is `meanwhile`, which takes longest.
  auto work = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i == 0) {
        try {
          if (meanwhile)
            meanwhile(*this);
        } catch (...) {
          thrown = std::current_exception();
        }
        continue;
      }
      std::span<const std::byte> block = blocks[static_cast<size_t>(i) - 1];
      file.prefault(block);
      sums[static_cast<size_t>(i) - 1] = checksum(block);
    }
  };
  auto items = static_cast<int64_t>(blocks.size()) + 1;
  ThreadPool(static_cast<int>(std::min<int64_t>(threads, items)))
      .parallelFor(items, work);
  if (thrown)
    std::rethrow_exception(thrown);
  size_t first = 0;
  for (const artifact::Payload &payload : contents.payloads()) {
    if (payload.kind() != artifact::Payload::WEIGHTS)
      continue;
    size_t count =
        (payload.size() + LLM_CHECKSUM_BLOCK - 1) / LLM_CHECKSUM_BLOCK;
    if (combineChecksums(std::span(sums).subspan(first, count)) !=
        payload.checksum())
      return damaged(payload);
    first += count;
  }
  return Status::success();
}

void Artifact::listUnsettled() {
  if (file.bytes().empty() || !grantsHugePages())
    return;
  for (const artifact::Payload &payload : contents.payloads()) {
    if (payload.kind() != artifact::Payload::WEIGHTS)
      continue;
    // Each copy is a mapping of its own, and a process has 65,530.
    uint64_t step = (payload.size() / 4096 / hugePage + 1) * hugePage;
    uint64_t whole = payload.size() / hugePage * hugePage;
    for (uint64_t at = 0; at < whole; at += step)
      unsettled.push_back(
          bytes.subspan(payload.offset() + at, std::min(step, whole - at)));
  }
}

bool Artifact::settle(double share, int threads) const {
  std::unique_lock<std::mutex> lock(settling, std::try_to_lock);
  if (!lock)
    return true;
  size_t left = unsettled.size() - settled;
  if (left == 0)
    return false;
  // The file may have huge pages itself, all but the rims of the weights.
  if (settled == 0 && file.hugePageBytes() >= bytes.size() / 10 * 9) {
    settled = unsettled.size();
    return false;
  }
  auto wanted = static_cast<size_t>(
      std::ceil(share * static_cast<double>(unsettled.size())));
  auto count =
      static_cast<int64_t>(std::min(std::max<size_t>(wanted, 1), left));
  std::atomic<bool> refused{false};
  ThreadPool(static_cast<int>(std::min<int64_t>(threads, count)))
      .parallelFor(count, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end && !refused; ++i)
          if (!file.copyInPlace(unsettled[settled + static_cast<size_t>(i)]))
            refused = true;
      });
  settled = refused ? unsettled.size() : settled + static_cast<size_t>(count);
  return settled < unsettled.size();
}

void Artifact::readPassSeconds(const std::string &path) {
  // One such attribute fits in a block of the file system.
  char text[4096];
  ssize_t length =
      getxattr(path.c_str(), LLM_PASS_SECONDS_ATTRIBUTE, text, sizeof(text));
  llm_artifact_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (length > 0)
    seconds = parsePassSeconds({text, static_cast<size_t>(length)},
                               header.manifest_checksum,
                               static_cast<size_t>(contents.passes_size()));
}

std::span<const std::byte> Artifact::payload(uint32_t index) const {
  const artifact::Payload &payload = contents.payloads(static_cast<int>(index));
  return bytes.subspan(payload.offset(), payload.size());
}

std::span<const std::byte> Artifact::weight(uint32_t index) const {
  const artifact::Weight &weight = contents.weights(static_cast<int>(index));
  return payload(weight.payload()).subspan(weight.offset(), weight.size());
}

} // namespace llm::runtime
