//===- fuzz_artifact.cpp - Reading and resolving hostile artifacts --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two modes, by the first byte. Even: the rest is a file. Odd: the rest is a
// manifest, which is put into a file with right checksums, so that everything
// behind the checksums is reached: the verifier, inspect, and, for what passes
// it, resolving every program at several sizes. Code is never loaded: a device
// that knows every function and calls none stands in for it.
//
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "llm/ABI/artifact.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Checksum.h"
#include "runtime/artifact/ElementTypes.h"
#include "runtime/device/Program.h"
#include "runtime/kvcache/Cache.h"
#include "runtime/session/Inspect.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <xxhash.h>

using namespace llm;
using namespace llm::runtime;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

void check(bool condition) {
  if (!condition)
    std::abort();
}

class AnyCode : public CodeObject {
public:
  const void *find(std::string_view) const override { return this; }
};

class AnyDevice : public Device {
public:
  std::string_view target() const override { return "any"; }
  Status supports(const artifact::Payload &) const override {
    return Status::success();
  }
  Expected<std::unique_ptr<CodeObject>>
  load(const artifact::Payload &, std::span<const std::byte>) override {
    return std::unique_ptr<CodeObject>(std::make_unique<AnyCode>());
  }
  /// What a kernel may rely on.
  Status run(std::span<const DispatchCall> calls, int64_t *) override {
    for (const DispatchCall &call : calls) {
      ++callsSeen;
      check(call.function && call.grid > 0);
      check(call.buffers.size() == call.bytes.size());
      for (size_t i = 0; i < call.buffers.size(); ++i)
        if (call.bytes[i] > 0) {
          // The first and the last byte are there.
          const auto *data =
              static_cast<const volatile std::byte *>(call.buffers[i]);
          (void)data[0];
          (void)data[call.bytes[i] - 1];
        }
    }
    return Status::success();
  }
  static inline uint64_t callsSeen = 0;
};

void resolve(const std::shared_ptr<const Artifact> &artifact) {
  AnyDevice device;
  CodeLoader code(artifact, device);
  std::vector<std::byte> arena(1 << 16), memory(1 << 16);
  for (int i = 0; i < artifact->manifest().programs_size(); ++i) {
    auto program = Program::load(artifact, i, code);
    if (!program)
      continue;
    auto lookup = [&](const artifact::Buffer &) -> Expected<BufferRef> {
      return BufferRef{memory.data(), memory.size()};
    };
    check((*program)->bind({arena.data(), arena.size()}, lookup).ok());
    for (std::array<int64_t, Symbols::count> values :
         {std::array<int64_t, Symbols::count>{1, 1, 1, 0, 1, 64},
          {0, 0, 0, 0, 0, 0},
          {64, 4, 4, 64, 16, 256},
          {int64_t(1) << 40, 1, 1, 1, 1, int64_t(1) << 62}}) {
      Symbols symbols;
      symbols.values = values;
      (void)(*program)->arenaBytes(symbols);
      auto plan = (*program)->plan(symbols);
      if (plan)
        check(device.run((*plan)->calls(), nullptr).ok());
    }
  }
}

void readWhole(std::span<const std::byte> bytes) {
  auto artifact = Artifact::fromBytes(bytes);
  if (!artifact)
    return;
  const artifact::Manifest &manifest = (*artifact)->manifest();
  for (int i = 0; i < manifest.weights_size(); ++i) {
    auto weight = (*artifact)->weight(static_cast<uint32_t>(i));
    check(weight.data() >= bytes.data() &&
          weight.data() + weight.size() <= bytes.data() + bytes.size());
  }
  check(inspectText(**artifact).ok() == inspectJson(**artifact).ok());
  (void)Cache::unitOf(manifest, 64);
  resolve(*artifact);
}

constexpr size_t headBytes = 1 << 16;
/// Room for one weights payload at its alignment.
constexpr size_t fileBytes = (2u << 20) + 8192;

void readManifest(const uint8_t *data, size_t size) {
  alignas(4096) static std::byte file[fileBytes];
  artifact::Manifest manifest;
  if (!manifest.ParseFromArray(data, static_cast<int>(size)))
    return;
  // Payloads are all zeros: with right checksums where they lie behind the
  // manifest.
  for (artifact::Payload &payload : *manifest.mutable_payloads())
    if (payload.offset() >= headBytes && payload.size() <= fileBytes &&
        payload.offset() <= fileBytes - payload.size())
      payload.set_checksum(
          payloadChecksum({file + payload.offset(), payload.size()}));
  std::string head;
  if (!manifest.SerializeToString(&head) ||
      head.size() > headBytes - sizeof(llm_artifact_header))
    return;
  std::memset(file, 0, headBytes);
  llm_artifact_header header = {};
  std::memcpy(header.magic, LLM_ARTIFACT_MAGIC, 8);
  header.version = LLM_ARTIFACT_VERSION;
  header.manifest_size = head.size();
  header.manifest_checksum = XXH3_64bits(head.data(), head.size());
  header.file_size = fileBytes;
  header.header_checksum = XXH3_64bits(&header, sizeof(header) - 8);
  std::memcpy(file, &header, sizeof(header));
  std::memcpy(file + sizeof(header), head.data(), head.size());
  readWhole(file);
}

/// A good manifest whose payloads lie where readManifest has zeros.
std::string goodManifest(unsigned seed) {
  test::ToyOptions options;
  options.pageSize = seed % 2 ? 16 : 0;
  options.hostFunction = seed % 3 == 0;
  std::vector<std::string> contents;
  artifact::Manifest manifest = test::toyManifest(options, contents);
  manifest.mutable_payloads(0)->set_offset(headBytes);
  manifest.mutable_payloads(0)->set_size(4096);
  manifest.mutable_payloads(1)->set_offset(2u << 20);
  manifest.mutable_payloads(1)->set_size(8192);
  std::string bytes;
  manifest.SerializeToString(&bytes);
  return bytes;
}

} // namespace

/// A good manifest gets through to the calls: else this tests nothing.
extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::string good = goodManifest(seed);
    uint64_t before = AnyDevice::callsSeen;
    readManifest(reinterpret_cast<const uint8_t *>(good.data()), good.size());
    check(AnyDevice::callsSeen > before);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  if ((size < 8 || seed % 64 == 0) && maxSize > 1) {
    std::string good =
        seed % 8 == 1 ? test::toyArtifact() : goodManifest(seed / 64);
    size = std::min(good.size(), maxSize - 1);
    std::memcpy(data + 1, good.data(), size);
    data[0] = seed % 8 == 1 ? 0 : 1;
    return size + 1;
  }
  // The mode stays.
  return 1 + LLVMFuzzerMutate(data + 1, size - 1, maxSize - 1);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  if (data[0] % 2) {
    readManifest(data + 1, size - 1);
    return 0;
  }
  std::vector<std::byte> memory(size + 63);
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  std::byte *start = memory.data() + (64 - address % 64) % 64;
  std::memcpy(start, data + 1, size - 1);
  readWhole({start, size - 1});
  return 0;
}
