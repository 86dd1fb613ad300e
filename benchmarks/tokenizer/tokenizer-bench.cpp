//===- tokenizer-bench.cpp - How fast a tokenizer loads and encodes -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   tokenizer-bench TOKENIZER TEXT [ROUNDS]
//
// TOKENIZER is a file or directory as llm-compile --tokenizer takes it. Prints
// medians over ROUNDS (default 15): loading it from its file and as an artifact
// holds it, ending it, and the bytes of TEXT that one thread encodes and
// decodes a second. A first round, which finds nothing in any cache, is not
// counted.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/kernels/Arguments.h"
#include "runtime/tokenizer/TokenizerSource.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>

using namespace llm::runtime;

namespace {

[[noreturn]] void fail(const Status &status) {
  std::fprintf(stderr, "tokenizer-bench: error: %s\n",
               status.message().c_str());
  std::exit(1);
}

template <typename T> T take(Expected<T> value) {
  if (!value)
    fail(value.status());
  return *std::move(value);
}

double median(int64_t rounds, const std::function<double()> &round) {
  std::vector<double> seconds;
  round();
  for (int64_t i = 0; i < rounds; ++i)
    seconds.push_back(round());
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

double timed(const std::function<void()> &work) {
  auto start = std::chrono::steady_clock::now();
  work();
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  return spent.count();
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: tokenizer-bench TOKENIZER TEXT [ROUNDS]\n");
    return 2;
  }
  int64_t rounds = argc > 3 ? llm::bench::parseCount(argv[3]) : 15;
  TokenizerSource source = take(readTokenizer(argv[1]));
  std::vector<uint8_t> sealed = take(sealTokenizer(source));
  std::ifstream file(argv[2], std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file),
                   std::istreambuf_iterator<char>()};
  if (!file || text.empty())
    fail(Status::invalidInput(std::string(argv[2]) +
                              ": it cannot be read or is empty"));

  std::unique_ptr<Tokenizer> tokenizer;
  auto load = [&](auto &&loader) {
    return median(rounds, [&] {
      tokenizer.reset();
      return timed([&] { tokenizer = take(loader()); });
    });
  };
  double fromFile = load([&] {
    return Tokenizer::load(source.kind, source.bytes, source.config);
  });
  double fromSeal = load([&] { return loadSealedTokenizer(sealed); });
  double ending = median(rounds, [&] {
    tokenizer = take(loadSealedTokenizer(sealed));
    return timed([&] { tokenizer.reset(); });
  });
  tokenizer = take(loadSealedTokenizer(sealed));

  std::vector<int32_t> ids;
  std::string decoded;
  double encoding = median(rounds, [&] {
    return timed([&] { ids = take(tokenizer->encode(text)); });
  });
  double decoding = median(rounds, [&] {
    return timed([&] { decoded = take(tokenizer->decode(ids)); });
  });
  auto size = static_cast<double>(text.size());
  std::printf("load: file %.2f ms, sealed %.2f ms (%zu bytes); end %.2f ms\n",
              fromFile * 1e3, fromSeal * 1e3, sealed.size(), ending * 1e3);
  std::printf("encode %.2f MB/s, decode %.2f MB/s (%zu bytes, %zu tokens)\n",
              size / encoding * 1e-6, size / decoding * 1e-6, text.size(),
              ids.size());
  return 0;
}
