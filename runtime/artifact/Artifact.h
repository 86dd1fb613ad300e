//===- Artifact.h - Reading a .llmx file -----------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_ARTIFACT_ARTIFACT_H
#define LLM_RUNTIME_ARTIFACT_ARTIFACT_H

#include "llm/ABI/artifact.h"
#include "llm/ABI/manifest.pb.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Status.h"

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace llm::runtime {

/// Largest manifest that is read. Parsed messages are some 30 times as large as
/// their bytes at worst, and the largest models have about 1 MiB.
inline constexpr uint64_t maxManifestBytes = 64u << 20;

/// A verified artifact (include/llm/ABI/artifact.h). Immutable; may be shared
/// by threads and sessions. The file must not be changed while it is open.
class Artifact {
public:
  /// Maps `path` and checks everything: header, bounds, checksums of the
  /// manifest and of every payload, zeros in the gaps, versions, and every
  /// index, count, name and expression of the manifest. Messages begin with the
  /// path. Reads the whole file once, with `threads` threads (0: all that the
  /// process may use). `meanwhile` is called by one of them while the weights
  /// are read, when all else has been checked; it may look at the manifest and
  /// at other payloads, and has returned when this does. What it throws fails
  /// as if it were thrown here.
  static Expected<std::shared_ptr<const Artifact>>
  open(const std::string &path, int threads = 0,
       const std::function<void(const Artifact &)> &meanwhile = {});

  /// As open, of bytes that outlive the artifact and start at a multiple of 64.
  static Expected<std::shared_ptr<const Artifact>>
  fromBytes(std::span<const std::byte> bytes);

  const artifact::Manifest &manifest() const { return contents; }
  /// How long each pass took; empty where the file does not say.
  std::span<const double> passSeconds() const { return seconds; }
  uint64_t fileSize() const { return bytes.size(); }

  std::span<const std::byte> payload(uint32_t index) const;
  /// The packed bytes of a weight.
  std::span<const std::byte> weight(uint32_t index) const;

  /// Copies some of the mapped weights into huge pages, in place: `share` of
  /// all of them, rounded up. True where something may be left: not where all
  /// are there, the file has huge pages itself, or the system grants none.
  /// Kernels may read weights meanwhile; where another thread is at it, nothing
  /// is done.
  bool settle(double share, int threads) const;

private:
  Artifact() = default;
  using Meanwhile = std::function<void(const Artifact &)>;
  static Expected<std::shared_ptr<Artifact>>
  create(MappedFile file, std::span<const std::byte> bytes, int threads,
         const Meanwhile &meanwhile);
  Status readHeader(llm_artifact_header &header) const;
  Status readManifest(const llm_artifact_header &header);
  Status verifyGaps(uint64_t manifestEnd) const;
  /// All but those of weights.
  Status verifyPayloads() const;
  Status verifyWeights(int threads, const Meanwhile &meanwhile) const;
  void listUnsettled();
  void readPassSeconds(const std::string &path);

  MappedFile file;
  std::span<const std::byte> bytes;
  artifact::Manifest contents;
  std::vector<double> seconds;

  /// Weights that settle has to copy, and how many it has: it changes where
  /// they are, not what they are.
  std::vector<std::span<const std::byte>> unsettled;
  mutable std::mutex settling;
  mutable size_t settled = 0;
};

/// Checks a manifest by itself: versions, and every index, count, name, shape
/// and expression. Payload offsets and sizes must lie in [0, fileSize), ascend
/// and be aligned. A verified manifest is safe to index without further checks;
/// sizes that depend on symbols are checked when a program is resolved.
Status verifyManifest(const artifact::Manifest &manifest, uint64_t fileSize);

/// A part of that, for an iteration whose programs exist: one that drafts
/// consists of the draft, a row-invariant program and what accepts; the draft's
/// numbers lie within their bounds, and what it leaves in the cache can be
/// dropped.
Status verifyDrafts(const artifact::Manifest &manifest,
                    const artifact::Iteration &iteration);

/// Whether the sizes of a verified manifest can be had in the steps that every
/// session comes to: no expression overflows or divides by zero, transient
/// buffers lie in the arena, and each dispatch has a variant.
Status verifySizes(const artifact::Manifest &manifest);

} // namespace llm::runtime

#endif // LLM_RUNTIME_ARTIFACT_ARTIFACT_H
