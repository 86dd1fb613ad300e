//===- Bench.cpp - llm-run bench -------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Limits.h"
#include "runtime/core/OutputFile.h"
#include "runtime/core/ThreadPool.h"
#include "tools/llm-run/Common.h"
#include "tools/llm-run/Profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

namespace llm::run {

using namespace runtime;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

namespace {

struct BenchOptions {
  CommonOptions common;
  int64_t promptTokens = 512, genTokens = 128;
  std::vector<int64_t> batches{1};
  bool profile = false;
  std::string trace;
};

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Figures {
  double prefillSeconds = 0, decodeSeconds = 0, firstTokenSeconds = 0;
};

/// Random ids: what they are costs nothing, but equal ones could flatter a
/// mixture of experts.
std::vector<int32_t> randomPrompt(int64_t sequence, int64_t length,
                                  int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i)
    ids.push_back(static_cast<int32_t>(uniform(static_cast<uint64_t>(sequence),
                                               static_cast<uint64_t>(i),
                                               RandomStream::Sample) *
                                       static_cast<double>(vocabulary)));
  return ids;
}

/// Prefills `batch` prompts, then decodes greedily, without an end.
Expected<Figures> measure(Session &session, int64_t batch, int64_t prompt,
                          int64_t steps, Profile *profile) {
  Figures figures;
  std::vector<Session::SequenceId> ids;
  std::vector<std::pair<Session::SequenceId, int32_t>> next;
  Sampler sampler;
  Clock::time_point start = Clock::now();
  auto onRow = [&](Session::SequenceId id, int64_t position,
                   const LogitRow &row) -> Status {
    LLM_ASSIGN_OR_RETURN(
        int32_t token, sampler.sample(row, {}, position + 1, greedySampling()));
    next.emplace_back(id, token);
    return Status::success();
  };
  auto step = [&](const char *phase) -> Status {
    LLM_RETURN_IF_ERROR(session.step(onRow));
    if (profile)
      profile->add(phase, *session.profile(), session.manifest());
    return Status::success();
  };
  for (int64_t i = 0; i < batch; ++i) {
    LLM_ASSIGN_OR_RETURN(Session::SequenceId id, session.add());
    ids.push_back(id);
    LLM_RETURN_IF_ERROR(
        session.append(id, randomPrompt(i, prompt, session.vocabularySize()),
                       LLM_ROLE_PROMPT, Logits::Last));
  }
  while (!session.idle() && !cancelled()) {
    size_t before = next.size();
    LLM_RETURN_IF_ERROR(step("prefill"));
    figures.firstTokenSeconds +=
        static_cast<double>(next.size() - before) * since(start);
  }
  figures.firstTokenSeconds /= static_cast<double>(batch);
  figures.prefillSeconds = since(start);
  start = Clock::now();
  for (int64_t i = 0; i < steps && !cancelled(); ++i) {
    std::vector<std::pair<Session::SequenceId, int32_t>> current;
    current.swap(next);
    for (auto [id, token] : current)
      LLM_RETURN_IF_ERROR(
          session.append(id, {{token}}, LLM_ROLE_GENERATED, Logits::Last));
    LLM_RETURN_IF_ERROR(step("decode"));
  }
  figures.decodeSeconds = since(start);
  for (Session::SequenceId id : ids)
    session.remove(id);
  return figures;
}

Expected<std::unique_ptr<Session>>
createSession(const BenchOptions &options,
              std::shared_ptr<const Artifact> artifact, int64_t batch) {
  SessionOptions sessionOptions = options.common.sessionOptions();
  int64_t length = options.promptTokens + options.genTokens;
  if (!sessionOptions.context)
    sessionOptions.context = static_cast<int32_t>(length);
  if (length > sessionOptions.context)
    return Status::invalidInput(
        std::to_string(length) + " tokens do not fit in the context of " +
        std::to_string(sessionOptions.context) + " (--context)");
  sessionOptions.maxSequences = batch;
  return Session::create(std::move(artifact), sessionOptions)
      .withContext(options.common.artifact);
}

/// Measures, and adds a line of JSON to `lines`, or prints the figures.
Status benchBatch(const BenchOptions &options,
                  std::shared_ptr<const Artifact> artifact, int64_t batch,
                  Profile *profile, std::vector<Json> &lines) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<Session> created,
                       createSession(options, std::move(artifact), batch));
  Session &session = *created;
  // Faults in code, arena and threads; weights come to where long runs have
  // them.
  while (session.settle())
    ;
  LLM_RETURN_IF_ERROR(
      measure(session, 1, std::min<int64_t>(options.promptTokens, 16),
              std::min<int64_t>(options.genTokens, 2), nullptr));
  session.setProfiling(profile != nullptr);
  resetPeakResidentBytes();
  LLM_ASSIGN_OR_RETURN(Figures figures,
                       measure(session, batch, options.promptTokens,
                               options.genTokens, profile));
  if (cancelled())
    return Status::success();
  auto perSecond = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  };
  double prefill =
      perSecond(batch * options.promptTokens, figures.prefillSeconds);
  double decode = perSecond(batch * options.genTokens, figures.decodeSeconds);
  uint64_t peak = peakResidentBytes();
  if (options.common.json) {
    Json line;
    line["batch"] = batch;
    line["prompt_tokens"] = options.promptTokens;
    line["prefill_tokens_per_s"] = prefill;
    line["decode_tokens_per_s"] = decode;
    line["ttft_ms"] = 1e3 * figures.firstTokenSeconds;
    line["peak_rss_bytes"] = peak;
    if (options.profile) {
      if (const auto &limits = profile->machineLimits())
        line["limits"] = {{"read_bytes_per_s", limits->readBytes},
                          {"f32_operations_per_s", limits->f32},
                          {"int8_operations_per_s", limits->int8},
                          {"bf16_operations_per_s", limits->bf16}};
      line["profile"] = profile->json();
    }
    lines.push_back(std::move(line));
    return Status::success();
  }
  char text[200];
  std::snprintf(text, sizeof(text),
                "batch %-3lld  prefill %9.1f tokens/s   decode %9.1f tokens/s  "
                " first token %7.1f ms   peak %s\n",
                static_cast<long long>(batch), prefill, decode,
                1e3 * figures.firstTokenSeconds, formatSize(peak).c_str());
  print(text);
  if (options.profile)
    print(profile->table());
  return Status::success();
}

Status benchAction(const BenchOptions &options) {
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                       openDecoder(options.common));
  // A later batch may be too large: better known before the first one runs.
  if (options.batches.size() > 1)
    for (int64_t batch : options.batches)
      LLM_RETURN_IF_ERROR(createSession(options, artifact, batch));
  bool traced = !options.trace.empty();
  // Before anything is measured and printed: it may not be writable.
  std::optional<OutputFile> file;
  if (traced) {
    LLM_RETURN_IF_ERROR(keepArtifact(options.common, options.trace));
    LLM_ASSIGN_OR_RETURN(OutputFile created, OutputFile::create(options.trace));
    file.emplace(std::move(created));
  }
  std::optional<MachineLimits> limits;
  if (options.profile) {
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                         createSession(options, artifact, 1));
    if (session->device() == "cpu")
      limits = measureLimits(std::min(session->threads(), availableThreads()));
  }
  std::string events;
  // Nothing is printed where a batch or the trace fails.
  std::vector<Json> lines;
  for (int64_t batch : options.batches) {
    std::unique_ptr<Profile> profile;
    if (options.profile || traced)
      profile = std::make_unique<Profile>(batch, traced, limits);
    LLM_RETURN_IF_ERROR(
        benchBatch(options, artifact, batch, profile.get(), lines));
    if (cancelled())
      return Status::success();
    if (traced)
      events += profile->traceEvents(!events.empty());
  }
  if (traced) {
    std::string text = "[" + events + "]\n";
    LLM_RETURN_IF_ERROR(file->write(text.data(), text.size()));
    LLM_RETURN_IF_ERROR(file->commit());
  }
  for (const Json &line : lines)
    printJson(line);
  return Status::success();
}

} // namespace

void addBench(CLI::App &app, Action &action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App *command = app.add_subcommand("bench", "Measures speed and memory");
  options->common.addTo(*command);
  command
      ->add_option("--prompt-tokens", options->promptTokens,
                   "length of each prompt (default 512)")
      ->check(CLI::Range(1, 1 << 24))
      ->type_name("N");
  command
      ->add_option("--gen-tokens", options->genTokens,
                   "tokens to generate after it (default 128)")
      ->check(CLI::Range(0, 1 << 24))
      ->type_name("N");
  command
      ->add_option("--batch", options->batches,
                   "numbers of sequences at once, such as 1,4,16 (default 1)")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->type_name("N,...");
  command->add_flag("--profile", options->profile,
                    "add the time of each kernel, with its rates and the "
                    "machine's limits");
  command
      ->add_option("--trace", options->trace,
                   "write every dispatch in the trace event format of Chrome")
      ->check(refuseEmpty)
      ->type_name("FILE");
  command->add_flag("--json", options->common.json,
                    "print JSON: one line per batch size");
  command->footer("Example:\n  llm-run bench model.llmx --prompt-tokens 512 "
                  "--gen-tokens 128 --batch 1,4,16");
  command->callback([options, &action] {
    action = [options] { return benchAction(*options); };
  });
}

} // namespace llm::run
