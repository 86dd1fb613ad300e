//===- Artifact.cpp - Reading a .llmx file -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Artifact.h"

#include "runtime/artifact/PassSeconds.h"
#include "runtime/core/Limits.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <google/protobuf/stubs/logging.h>
#include <sys/xattr.h>
#include <system_error>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llm::runtime {

namespace {

bool allZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte b) { return b == std::byte(0); });
}

/// Calls `meanwhile` in another thread; here where there can be none.
std::future<void>
startMeanwhile(const std::function<void(const Artifact &)> &meanwhile,
               const Artifact &artifact) {
  if (!meanwhile)
    return {};
  try {
    return std::async(std::launch::async, meanwhile, std::cref(artifact));
  } catch (const std::system_error &) {
    meanwhile(artifact);
    return {};
  }
}

} // namespace

Expected<std::shared_ptr<const Artifact>>
Artifact::open(const std::string &path, Weights weights,
               const Meanwhile &meanwhile) {
  LLM_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  std::span<const std::byte> bytes = file.bytes();
  LLM_ASSIGN_OR_RETURN(
      std::shared_ptr<Artifact> artifact,
      create(std::move(file), bytes, weights, meanwhile).withContext(path));
  artifact->readPassSeconds(path);
  return std::shared_ptr<const Artifact>(std::move(artifact));
}

Expected<std::shared_ptr<const Artifact>>
Artifact::fromBytes(std::span<const std::byte> bytes) {
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<Artifact> artifact,
                       create(MappedFile(), bytes, Weights::Mapped, {}));
  return std::shared_ptr<const Artifact>(std::move(artifact));
}

Expected<std::shared_ptr<Artifact>>
Artifact::create(MappedFile file, std::span<const std::byte> bytes,
                 Weights weights, const Meanwhile &meanwhile) {
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
    artifact->copies.resize(
        static_cast<size_t>(artifact->contents.payloads_size()));
    LLM_RETURN_IF_ERROR(artifact->verifyPayloads(false, weights));
    std::future<void> other = startMeanwhile(meanwhile, *artifact);
    LLM_RETURN_IF_ERROR(artifact->verifyPayloads(true, weights));
    if (other.valid())
      other.get();
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
      XXH3_64bits(bytes.data(), sizeof(header) - 8) == header.header_checksum;
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
  const std::byte *start = bytes.data() + sizeof(header);
  if (XXH3_64bits(start, header.manifest_size) != header.manifest_checksum)
    return Status::invalidInput(
        "the artifact is damaged: the checksum of its manifest is wrong");
  // Protobuf would print; the failure is reported by us.
  google::protobuf::LogSilencer silencer;
  if (!contents.ParseFromArray(start, static_cast<int>(header.manifest_size)))
    return Status::invalidInput("the manifest is not a valid message");
  return Status::success();
}

/// Checks the payload's checksum, filling `copy` where that is not null. By
/// parts that stay in the processor's cache between copying and hashing; of
/// what is copied, the file's pages are let go at once.
Status Artifact::verifyPayload(const artifact::Payload &payload,
                               std::byte *copy) const {
  constexpr uint64_t part = 512u << 10;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (uint64_t done = 0; done < payload.size(); done += part) {
    uint64_t size = std::min(part, payload.size() - done);
    std::span<const std::byte> source =
        bytes.subspan(payload.offset() + done, size);
    const std::byte *data = source.data();
    if (copy) {
      file.prefault(source);
      std::memcpy(copy + done, source.data(), size);
      file.letGo(source);
      data = copy + done;
    }
    XXH3_64bits_update(&state, data, size);
  }
  if (XXH3_64bits_digest(&state) != payload.checksum())
    return Status::invalidInput(
        "the artifact is damaged: the checksum of payload '" + payload.name() +
        "' is wrong");
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

Status Artifact::verifyPayloads(bool ofWeights, Weights weights) {
  for (size_t i = 0; i < copies.size(); ++i) {
    const artifact::Payload &payload = contents.payloads(static_cast<int>(i));
    if ((payload.kind() == artifact::Payload::WEIGHTS) != ofWeights)
      continue;
    if (ofWeights && weights == Weights::Resident &&
        payload.size() <= memoryLimit() &&
        Allocation::inHugePages(payload.size())) {
      LLM_ASSIGN_OR_RETURN(copies[i], Allocation::create(payload.size()));
    }
    LLM_RETURN_IF_ERROR(verifyPayload(payload, copies[i].data()));
  }
  return Status::success();
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
  if (const Allocation &copy = copies[index]; copy.data())
    return {copy.data(), copy.size()};
  const artifact::Payload &payload = contents.payloads(static_cast<int>(index));
  return bytes.subspan(payload.offset(), payload.size());
}

std::span<const std::byte> Artifact::weight(uint32_t index) const {
  const artifact::Weight &weight = contents.weights(static_cast<int>(index));
  return payload(weight.payload()).subspan(weight.offset(), weight.size());
}

} // namespace llm::runtime
