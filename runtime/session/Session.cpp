//===- Session.cpp - An artifact's decoder, running -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Session.h"

#include "runtime/core/ThreadPool.h"

#include <algorithm>

namespace llm::runtime {

namespace {
/// Weights are read from the mapped file at first: a short run is over before
/// huge pages could pay for the copy. After this many steps they are copied, a
/// part with each step.
constexpr int64_t stepsBeforeSettling = 128;
constexpr double settledEachStep = 1.0 / 32;

/// The index of the program that generates on `target`: the one that an
/// iteration calls, or, without iterations, the only one. Sets `drafting` to
/// how that iteration drafts.
Expected<int> decoderProgram(const artifact::Manifest &manifest,
                             std::string_view target, Speculation &drafting) {
  std::vector<int> found;
  for (const artifact::Iteration &iteration : manifest.iterations()) {
    std::vector<int> programs;
    for (const artifact::Iteration::Call &call : iteration.calls())
      if (call.kind() == artifact::Iteration::Call::PROGRAM)
        programs.push_back(static_cast<int>(call.program()));
    bool ours = std::any_of(programs.begin(), programs.end(), [&](int index) {
      return manifest.programs(index).target() == target;
    });
    if (!ours)
      continue;
    if (programs.size() != 1)
      return Status::unsupported("iteration '" + iteration.name() + "' calls " +
                                 std::to_string(programs.size()) +
                                 " programs; this runtime runs one");
    found.push_back(programs.front());
    for (const artifact::Iteration::Call &call : iteration.calls())
      if (call.kind() == artifact::Iteration::Call::DRAFT)
        drafting = Speculation(call.draft());
  }
  if (found.empty())
    for (int i = 0; i < manifest.programs_size(); ++i)
      if (manifest.programs(i).target() == target)
        found.push_back(i);
  if (found.empty())
    return Status::unsupported("the artifact has no decoder program for '" +
                               std::string(target) + "'");
  if (found.size() > 1)
    return Status::unsupported("the artifact has " +
                               std::to_string(found.size()) +
                               " decoder programs for '" + std::string(target) +
                               "' and does not say which generates");
  return found.front();
}
} // namespace

Status requireDecoder(const artifact::Manifest &manifest) {
  if (!manifest.decoder()) {
    const std::string &reason = manifest.not_decoder_reason();
    return Status::unsupported("the artifact holds a plain graph, no decoder" +
                               (reason.empty() ? "" : " (" + reason + ")") +
                               ": llm-run exec runs it");
  }
  if (manifest.synthetic_weights())
    return Status::unsupported("the artifact has shapes in place of weights "
                               "(--weights=synthetic)");
  return Status::success();
}

Expected<std::unique_ptr<Session>>
Session::create(std::shared_ptr<const Artifact> artifact,
                const SessionOptions &options) {
  return catchExceptions([&]() -> Expected<std::unique_ptr<Session>> {
    std::unique_ptr<Session> session(new Session());
    session->artifact = std::move(artifact);
    LLM_RETURN_IF_ERROR(session->setUp(options));
    return session;
  });
}

Status Session::setUp(SessionOptions options) {
  const artifact::Manifest &m = manifest();
  LLM_RETURN_IF_ERROR(requireDecoder(m));
  auto maxContext = static_cast<int32_t>(m.generation().max_context());
  contextLength = options.context ? options.context : maxContext;
  if (contextLength < 1 || contextLength > maxContext)
    return Status::invalidInput(
        "a context of " + std::to_string(contextLength) +
        " tokens is asked for, the model's maximum is " +
        std::to_string(maxContext));
  LLM_ASSIGN_OR_RETURN(std::string name, chooseDevice(m, options.device));
  numThreads = options.threads ? options.threads : availableThreads();
  LLM_ASSIGN_OR_RETURN(executor, createDevice(name, numThreads));
  LLM_RETURN_IF_ERROR(findProgram());
  // Tokens do not tell what is fed beside them, and what is not computed is not
  // observed.
  options.prefixCache &= sides.buffers().empty();
  LLM_ASSIGN_OR_RETURN(sizes, chooseSizes(options));

  CacheShape shape;
  shape.context = contextLength;
  shape.maxSequences = static_cast<int32_t>(maxSequences());
  shape.slots = cacheSlots();
  LLM_ASSIGN_OR_RETURN(Cache created, Cache::create(m, shape));
  cache = std::make_unique<Cache>(std::move(created));
  LLM_ASSIGN_OR_RETURN(StepArrays step, StepArrays::create(sizes.capacity));
  arrays = std::make_unique<StepArrays>(std::move(step));
  SchedulerOptions scheduling;
  scheduling.chunk = chunkFor(options, maxSequences());
  scheduling.maxSequences = maxSequences();
  scheduling.maxLogitRows = rowsFor(options, maxSequences());
  scheduling.maxDraft = drafting.tokens;
  scheduling.context = contextLength;
  scheduling.fair = options.fair;
  scheduling.prefixCache = options.prefixCache;
  scheduler = std::make_unique<Scheduler>(scheduling, *cache, *arrays);
  return bind(sizes.largest);
}

Status Session::findProgram() {
  LLM_ASSIGN_OR_RETURN(
      int index, decoderProgram(manifest(), executor->target(), drafting));
  code = std::make_unique<CodeLoader>(artifact, *executor);
  LLM_ASSIGN_OR_RETURN(program, Program::load(artifact, index, *code));
  for (const artifact::Buffer &buffer : program->description().buffers())
    hasLogits |=
        buffer.lifetime() == artifact::Buffer::IO && buffer.name() == "logits";
  LLM_ASSIGN_OR_RETURN(sides, SideRows::find(*program));
  if (!hasLogits && !sides.givesAny())
    return Status::invalidInput("the decoder program writes no 'logits'");
  return Status::success();
}

Status Session::bind(const Symbols &largest) {
  LLM_ASSIGN_OR_RETURN(int64_t arenaBytes, program->arenaBytes(largest));
  LLM_ASSIGN_OR_RETURN(arena,
                       Allocation::create(static_cast<uint64_t>(arenaBytes)));
  if (hasLogits) {
    auto rows = static_cast<uint64_t>(largest[Symbols::R]);
    LLM_ASSIGN_OR_RETURN(
        logits,
        Allocation::create(rows * static_cast<uint64_t>(vocabularySize()) *
                           sizeof(float)));
    LLM_ASSIGN_OR_RETURN(
        maxima, Allocation::create(rows * static_cast<uint64_t>(logitBlocks()) *
                                   sizeof(float)));
  }
  LLM_RETURN_IF_ERROR(sides.allocate(largest));
  auto lookup = [&](const artifact::Buffer &buffer) -> Expected<BufferRef> {
    if (buffer.lifetime() == artifact::Buffer::STATE) {
      Cache::PlaneRef plane =
          cache->plane(buffer.group(), buffer.layer(), buffer.plane());
      return BufferRef{plane.data, plane.bytes};
    }
    bool isMaxima = buffer.name() == "logits_maxima";
    if (isMaxima || buffer.name() == "logits") {
      if (buffer.element_type() != artifact::F32)
        return Status::unsupported("the program's " + buffer.name() +
                                   " are not f32");
      if (!hasLogits)
        return Status::invalidInput("the program has logits_maxima and no "
                                    "logits");
      hasMaxima |= isMaxima;
      Allocation &rows = isMaxima ? maxima : logits;
      return BufferRef{rows.data(), rows.size()};
    }
    if (std::optional<BufferRef> rows = sides.find(buffer.name()))
      return *rows;
    if (std::optional<BufferRef> array = arrays->find(buffer.name())) {
      if (buffer.element_type() != artifact::I32)
        return Status::invalidInput("the program's '" + buffer.name() +
                                    "' is not i32");
      return *array;
    }
    return Status::unsupported("the program reads or writes '" + buffer.name() +
                               "', which a step does not have");
  };
  LLM_RETURN_IF_ERROR(program->bind({arena.data(), arena.size()}, lookup));
  LLM_RETURN_IF_ERROR(verifyRows("logits", vocabularySize(), largest));
  return verifyRows("logits_maxima", logitBlocks(), largest);
}

/// That the buffers of this name have `width` elements for each row of logits:
/// fails now, not in the middle of a request, where one is too small.
Status Session::verifyRows(std::string_view name, int64_t width,
                           const Symbols &largest) const {
  for (int i = 0; i < program->description().buffers_size(); ++i) {
    if (program->description().buffers(i).name() != name)
      continue;
    LLM_ASSIGN_OR_RETURN(int64_t elements, program->bufferElements(i, largest));
    if (elements != largest[Symbols::R] * width)
      return Status::invalidInput("the program's " + std::string(name) +
                                  " have " + std::to_string(elements) +
                                  " elements for " +
                                  std::to_string(largest[Symbols::R]) +
                                  " rows of " + std::to_string(width));
  }
  return Status::success();
}

Status Session::verifyTokens(std::span<const int32_t> tokens) const {
  for (int32_t token : tokens)
    if (token < 0 || token >= vocabularySize())
      return Status::invalidInput("token " + std::to_string(token) +
                                  " is not in the vocabulary of " +
                                  std::to_string(vocabularySize()));
  return Status::success();
}

Status Session::append(SequenceId id, std::span<const int32_t> tokens,
                       llm_role role, Logits wanted) {
  if (role != LLM_ROLE_PROMPT && role != LLM_ROLE_GENERATED)
    return Status::invalidInput("tokens of role " + std::to_string(role) +
                                ", which is none");
  LLM_RETURN_IF_ERROR(verifyTokens(tokens));
  return scheduler->append(id, tokens, role, wanted);
}

Status Session::draft(SequenceId id, std::span<const int32_t> tokens) {
  LLM_RETURN_IF_ERROR(verifyTokens(tokens));
  return scheduler->draft(id, tokens);
}

Status Session::step(const RowCallback &row) {
  LLM_ASSIGN_OR_RETURN(Scheduler::Step next, scheduler->next());
  if (next.symbols[Symbols::T] == 0)
    return Status::success();
  next.symbols[Symbols::C] = cacheSlots();
  LLM_ASSIGN_OR_RETURN(const Plan *plan, program->plan(next.symbols));
  int64_t *times = nullptr;
  if (recorded) {
    recorded->plan = plan;
    recorded->program = &program->description();
    recorded->nanoseconds.assign(plan->calls().size(), 0);
    times = recorded->nanoseconds.data();
  }
  if (++steps > stepsBeforeSettling)
    settle();
  LLM_RETURN_IF_ERROR(sides.supply(next.symbols, sideCallbacks));
  LLM_RETURN_IF_ERROR(executor->run(plan->calls(), times));
  scheduler->commit();
  LLM_RETURN_IF_ERROR(sides.observe(next.symbols, sideCallbacks));
  const auto *values = reinterpret_cast<const float *>(logits.data());
  const auto *largest = reinterpret_cast<const float *>(maxima.data());
  auto vocabulary = static_cast<size_t>(vocabularySize());
  size_t blocks = hasMaxima ? static_cast<size_t>(logitBlocks()) : 0;
  for (size_t i = 0; hasLogits && i < next.rows.size(); ++i) {
    if (!scheduler->isCurrent(next.rows[i]))
      continue;
    LLM_RETURN_IF_ERROR(row(next.rows[i].sequence, next.rows[i].position,
                            {{values + i * vocabulary, vocabulary},
                             {largest + i * blocks, blocks}}));
  }
  return Status::success();
}

bool Session::settle() { return artifact->settle(settledEachStep, numThreads); }

void Session::setProfiling(bool on) {
  recorded = on ? std::make_unique<Profile>() : nullptr;
}

} // namespace llm::runtime
