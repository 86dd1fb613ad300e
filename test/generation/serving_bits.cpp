//===- serving_bits.cpp - Logits do not tell how they were served -----===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   serving-bits ARTIFACT.llmx
//
// Answers requests each alone, by nothing but a session's steps: the prompt at
// once, then token by token. Then answers them by an engine: in chunks, in
// batches, arriving one after the other, in a cache that is too small for all,
// with shared beginnings, branching from one prompt; with drafts where the
// artifact makes some. Every row of logits must have the bits that it has
// alone, and each way of serving must have happened. Prints "N runs of M rows
// agree".
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

using namespace llm::runtime;

namespace {

/// The bits of a row of logits, folded.
uint64_t bitsOf(const LogitRow &row) {
  uint64_t hash = 14695981039346656037u;
  for (float logit : row.logits) {
    uint32_t bits;
    std::memcpy(&bits, &logit, sizeof(bits));
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}

using Key = std::pair<size_t, int32_t>; ///< request, continuation
using Rows = std::map<Key, std::vector<uint64_t>>;

template <typename T> T check(Expected<T> value) {
  if (!value) {
    std::fprintf(stderr, "%s\n", value.status().message().c_str());
    std::exit(1);
  }
  return *std::move(value);
}
void check(const Status &status) {
  if (!status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
  }
}

std::vector<int32_t> randomIds(uint64_t seed, int64_t count,
                               int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(
        3 + uniform(seed, static_cast<uint64_t>(i), RandomStream::Sample) *
                static_cast<double>(vocabulary - 3)));
  return ids;
}

std::vector<GenerationRequest> makeRequests(int64_t vocabulary) {
  std::vector<GenerationRequest> list;
  std::vector<int32_t> common = randomIds(1, 71, vocabulary);
  for (uint64_t i = 0; i < 8; ++i) {
    GenerationRequest request;
    if (i % 2)
      request.prompt = common;
    std::vector<int32_t> own =
        randomIds(10 + i, static_cast<int64_t>(1 + 37 * i % 50), vocabulary);
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.maxTokens = static_cast<int64_t>(20 + 5 * i);
    if (i % 3) {
      request.sampling.temperature = 1.2f;
      request.sampling.seed = 100 * i;
    }
    request.n = i == 4 || i == 7 ? 3 : 1;
    list.push_back(std::move(request));
  }
  return list;
}

int64_t lengthOf(const GenerationRequest &request) {
  return static_cast<int64_t>(request.prompt.size()) + request.maxTokens - 1;
}

Rows runAlone(const std::shared_ptr<const Artifact> &artifact,
              const std::vector<GenerationRequest> &requests) {
  Rows rows;
  std::unique_ptr<Session> session =
      check(Session::create(artifact, SessionOptions()));
  Sampler sampler;
  for (size_t i = 0; i < requests.size(); ++i)
    for (int32_t choice = 0; choice < requests[i].n; ++choice) {
      const GenerationRequest &request = requests[i];
      llm_sampling sampling = request.sampling;
      sampling.seed = choiceSeed(sampling.seed, choice);
      Session::SequenceId id = check(session->add());
      check(session->append(id, request.prompt, LLM_ROLE_PROMPT, Logits::Last));
      for (int64_t count = 0; count < request.maxTokens; ++count) {
        int32_t token = -1;
        check(session->step(
            [&](Session::SequenceId, int64_t position, const LogitRow &row) {
              rows[{i, choice}].push_back(bitsOf(row));
              token = check(sampler.sample(row, {}, position + 1, sampling));
              return Status::success();
            }));
        check(session->append(id, {{token}}, LLM_ROLE_GENERATED, Logits::Last));
      }
      session->remove(id);
    }
  return rows;
}

struct Way {
  const char *name;
  int64_t chunk = 0;
  int64_t sequences = 8;
  int threads = 1;
  bool tight = false; ///< a cache for the longest request alone
  bool prefixCache = false;
  int stepsBetween = 0; ///< two arrivals
};

struct Happened {
  int64_t preemptions = 0, cached = 0, drafted = 0, accepted = 0;
};

Happened runServed(const std::shared_ptr<const Artifact> &artifact,
                   const std::vector<GenerationRequest> &requests,
                   const Way &way, Rows &rows) {
  SessionOptions options;
  options.chunk = way.chunk;
  options.threads = way.threads;
  options.maxSequences = way.sequences;
  options.prefixCache = way.prefixCache;
  int64_t longest = 0;
  for (const GenerationRequest &request : requests)
    longest = std::max(longest, lengthOf(request));
  options.context = static_cast<int32_t>(longest);
  options.lengths.assign(way.tight ? 1 : static_cast<size_t>(way.sequences),
                         longest);
  std::unique_ptr<Session> session = check(Session::create(artifact, options));
  Happened happened;
  Engine::Events events;
  events.onLogits = [&](uint64_t id, int32_t choice, const LogitRow &row) {
    rows[{id, choice}].push_back(bitsOf(row));
  };
  events.onFinish = [&](uint64_t, const GenerationResult &result) {
    check(result.error);
    happened.preemptions += result.preemptions;
    happened.cached += result.cachedTokens;
    happened.drafted += result.drafted;
    happened.accepted += result.accepted;
  };
  Engine engine(*session, nullptr, events);
  for (const GenerationRequest &request : requests) {
    check(engine.submit(std::make_shared<GenerationRequest>(request)));
    for (int step = 0; step < way.stepsBetween; ++step)
      check(engine.step());
  }
  while (!engine.idle())
    check(engine.step());
  return happened;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: serving-bits ARTIFACT.llmx\n");
    return 2;
  }
  std::shared_ptr<const Artifact> artifact = check(Artifact::open(argv[1]));
  bool paged = true, drafts = false;
  for (const auto &iteration : artifact->manifest().iterations())
    for (const auto &call : iteration.calls())
      drafts |= call.has_draft();
  for (const auto &group : artifact->manifest().cache_groups())
    paged &= group.page_size() > 0;
  std::vector<GenerationRequest> requests =
      makeRequests(artifact->manifest().vocabulary_size());
  Rows alone = runAlone(artifact, requests);
  size_t count = 0;
  for (const auto &[key, rows] : alone)
    count += rows.size();
  const Way ways[] = {
      {.name = "one after the other", .sequences = 1},
      {.name = "together"},
      {.name = "two threads", .threads = 2},
      {.name = "chunks of 1", .chunk = 1},
      {.name = "chunks of 7", .chunk = 7, .threads = 2},
      {.name = "chunks of 64, three at a time", .chunk = 64, .sequences = 3},
      {.name = "arriving", .chunk = 16, .stepsBetween = 3},
      {.name = "tight", .tight = true},
      {.name = "tight, chunks of 7", .chunk = 7, .tight = true},
      {.name = "tight, arriving", .tight = true, .stepsBetween = 4},
      {.name = "shared", .chunk = 64, .prefixCache = true},
      {.name = "shared, one at a time", .sequences = 1, .prefixCache = true},
      {.name = "shared, arriving", .prefixCache = true, .stepsBetween = 5},
      {.name = "shared, tight, chunks of 20",
       .chunk = 20,
       .tight = true,
       .prefixCache = true},
  };
  int runs = 0;
  for (const Way &way : ways) {
    Rows rows;
    Happened happened = runServed(artifact, requests, way, rows);
    for (const auto &[key, expected] : alone) {
      const std::vector<uint64_t> &found = rows[key];
      auto differs = std::mismatch(expected.begin(), expected.end(),
                                   found.begin(), found.end());
      if (differs.first != expected.end() || differs.second != found.end()) {
        std::fprintf(stderr,
                     "%s: request %zu, continuation %d: %zu rows of %zu, "
                     "first other one %td\n",
                     way.name, key.first, key.second, found.size(),
                     expected.size(), differs.first - expected.begin());
        return 1;
      }
    }
    if ((paged && way.tight && happened.preemptions == 0) ||
        (paged && way.prefixCache && happened.cached == 0)) {
      std::fprintf(stderr, "%s: %lld preemptions, %lld tokens reused\n",
                   way.name, static_cast<long long>(happened.preemptions),
                   static_cast<long long>(happened.cached));
      return 1;
    }
    if (drafts &&
        (happened.accepted == 0 || happened.accepted == happened.drafted)) {
      std::fprintf(stderr, "%s: %lld of %lld drafts accepted\n", way.name,
                   static_cast<long long>(happened.accepted),
                   static_cast<long long>(happened.drafted));
      return 1;
    }
    ++runs;
  }
  std::printf("%d runs of %zu rows agree\n", runs, count);
  return 0;
}
