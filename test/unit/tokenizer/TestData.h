//===- TestData.h - where test data are ------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Where tests find their data.

#ifndef LLM_TEST_UNIT_TOKENIZER_TESTDATA_H
#define LLM_TEST_UNIT_TOKENIZER_TESTDATA_H

#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/TokenizerSource.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

namespace llm::runtime::test {

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

/// A file beside the tests.
inline std::string sourcePath(const std::string &name) {
  return std::string(LLM_TOKENIZER_TEST_DIR) + "/" + name;
}

/// The folder of reference data, or nothing: LLM_SHARED_DATA, else what the
/// build found.
inline std::string sharedData() {
  const char *set = std::getenv("LLM_SHARED_DATA");
  std::string path = set ? set : LLM_SHARED_DATA_DIR;
  return std::filesystem::is_directory(path) ? path : "";
}

inline Expected<std::unique_ptr<Tokenizer>>
load(TokenizerKind kind, std::string_view bytes,
     const TokenizerConfig &config = {}) {
  return Tokenizer::load(
      kind, {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()},
      config);
}

/// As load, by way of what an artifact holds.
inline Expected<std::unique_ptr<Tokenizer>>
loadSealed(TokenizerKind kind, std::string_view bytes,
           const TokenizerConfig &config = {}) {
  TokenizerSource source;
  source.kind = kind;
  source.bytes.assign(bytes.begin(), bytes.end());
  source.config = config;
  LLM_ASSIGN_OR_RETURN(std::vector<uint8_t> blob, sealTokenizer(source));
  return loadSealedTokenizer(blob);
}

} // namespace llm::runtime::test

#endif // LLM_TEST_UNIT_TOKENIZER_TESTDATA_H
