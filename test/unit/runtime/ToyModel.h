//===- ToyModel.h - An artifact and its meaning, for the tests ----*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TEST_UNIT_RUNTIME_TOYMODEL_H
#define LLM_TEST_UNIT_RUNTIME_TOYMODEL_H

#include "llm/ABI/manifest.pb.h"
#include "llm/ABI/step.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace llm::test {

/// Lays an artifact out as include/llm/ABI/artifact.h says. The payloads'
/// offsets, sizes and checksums in `manifest` are filled in; `contents` are
/// their bytes.
std::string writeArtifact(artifact::Manifest manifest,
                          const std::vector<std::string> &contents);

/// Recomputes every checksum of a (possibly mutated) artifact that is not too
/// broken for it: payload checksums only if the manifest still parses.
std::string fixChecksums(std::string bytes);

struct ToyOptions {
  uint32_t pageSize = 16; ///< 0: contiguous
  uint32_t vocabulary = 101;
  uint32_t context = 256;
  /// An additional first variant that needs a processor feature nobody has.
  bool impossibleVariant = false;
  /// No variant but the impossible one.
  bool onlyImpossible = false;
  bool hostFunction = false;
  /// The second dispatch says that it is concurrent with the first, whose
  /// output it reads.
  bool concurrent = false;
  /// Drafts so many tokens by looking so many up; 0: it does not draft.
  uint32_t lookup = 0, draftTokens = 4;
};

artifact::Manifest toyManifest(const ToyOptions &options,
                               std::vector<std::string> &contents);
/// A whole artifact.
std::string toyArtifact(const ToyOptions &options = {});

/// What the toy model says after `tokens` with `roles`: the logits of the next
/// token.
std::vector<float> toyLogits(const std::vector<int32_t> &tokens,
                             const std::vector<llm_role> &roles,
                             uint32_t vocabulary);

/// Greedy continuation of `prompt` by toyLogits.
std::vector<int32_t> toyGenerate(const std::vector<int32_t> &prompt,
                                 size_t count, uint32_t vocabulary);

/// A file in the test's temporary directory, removed at the end.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &bytes,
                         const std::string &suffix = "");
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile &) = delete;
  const std::string &path() const { return name; }

private:
  std::string name;
};

} // namespace llm::test

#endif // LLM_TEST_UNIT_RUNTIME_TOYMODEL_H
