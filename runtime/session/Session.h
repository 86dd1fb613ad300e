//===- Session.h - An artifact's decoder, running -----------------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_SESSION_H
#define LLM_RUNTIME_SESSION_SESSION_H

#include "runtime/artifact/Artifact.h"
#include "runtime/device/Program.h"
#include "runtime/scheduler/Scheduler.h"
#include "runtime/session/Sampler.h"
#include "runtime/session/SideRows.h"
#include "runtime/session/Speculation.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llm::runtime {

/// Names of the devices that this build has and that run here, best first.
std::vector<std::string> availableDevices();

/// A device by name; threads >= 1. Unsupported if this build does not have it.
Expected<std::unique_ptr<Device>> createDevice(const std::string &name,
                                               int threads);

/// The device to use: `wanted`, or where that is empty the first of cuda, cpu,
/// cuda-emulator that the artifact has code for and that runs here.
Expected<std::string> chooseDevice(const artifact::Manifest &manifest,
                                   const std::string &wanted);

/// Unsupported, with the reason, where an artifact holds no decoder that runs.
Status requireDecoder(const artifact::Manifest &manifest);

struct SessionOptions {
  std::string device;  ///< empty: see chooseDevice
  int threads = 0;     ///< 0: all that the process may use
  int32_t context = 0; ///< tokens of a sequence; 0: the model's maximum
  int64_t chunk = 0;   ///< tokens of a step; 0: 512
  /// At once: further ones wait. 0: as many of `lengths` as memory allows, at
  /// most defaultMaxSequences.
  int64_t maxSequences = 1;
  int64_t maxLogitRows = 0; ///< of a step; 0: maxSequences
  /// Tokens of each sequence that will come, where known: the cache is made
  /// large enough for the maxSequences longest; else for maxSequences times
  /// the context.
  std::vector<int64_t> lengths;
  /// What each of `lengths` comes to on average while it runs; where empty,
  /// all of it. For maxSequences = 0.
  std::vector<int64_t> usualLengths;
  /// Where memory does not suffice for such a cache, it gets what there is, but
  /// at least enough for the longest sequence. Sequences then wait for each
  /// other.
  bool fitCache = false;
  bool prefixCache = false; ///< SchedulerOptions::prefixCache
  uint64_t memory = 0;      ///< bytes; 0: what the surroundings grant
  bool fair = false;        ///< SchedulerOptions::fair
  uint64_t held = 0; ///< bytes that the caller holds and memory has to cover
};

/// Sequences at once where nobody says how many.
inline constexpr int64_t defaultMaxSequences = 64;

/// What the memory certificate says for a session: peaks, in bytes.
struct MemoryUse {
  uint64_t weights = 0;
  uint64_t activations = 0;
  uint64_t cache = 0;
  uint64_t logits = 0;
  uint64_t fixed = 0;
  uint64_t total() const {
    return weights + activations + cache + logits + fixed;
  }
};

/// Runs sequences through a decoder program step by step. One thread at a time.
class Session {
public:
  using SequenceId = Scheduler::SequenceId;

  /// Unsupported where the artifact has no decoder program for the device;
  /// Resource, with the terms of the certificate, where the session does not
  /// fit in the memory; InvalidInput where the context exceeds the model's.
  static Expected<std::unique_ptr<Session>>
  create(std::shared_ptr<const Artifact> artifact,
         const SessionOptions &options);

  const artifact::Manifest &manifest() const { return artifact->manifest(); }
  int64_t vocabularySize() const { return manifest().vocabulary_size(); }
  int64_t logitBlocks() const {
    return (vocabularySize() + LLM_LOGITS_BLOCK - 1) / LLM_LOGITS_BLOCK;
  }
  int32_t context() const { return contextLength; }
  /// Slots of the cache: tokens over all sequences, in whole pages.
  int64_t cacheSlots() const { return sizes.largest[Symbols::C]; }
  int64_t maxSequences() const { return sizes.largest[Symbols::S]; }
  int threads() const { return numThreads; }
  std::string_view device() const { return executor->target(); }
  const MemoryUse &memory() const { return sizes.use; }
  /// How the artifact drafts; it has room for that in every step.
  const Speculation &speculation() const { return drafting; }

  /// A new sequence, of `most` tokens at most (0: the context). It waits where
  /// maxSequences are resident, and may lose its place for a while: see
  /// Scheduler.
  Expected<SequenceId> add(int64_t most = 0) { return scheduler->add(most); }
  Expected<SequenceId> fork(SequenceId parent) {
    return scheduler->fork(parent);
  }
  void remove(SequenceId id) { scheduler->remove(id); }
  /// InvalidInput for an id outside the vocabulary.
  Status verifyTokens(std::span<const int32_t> tokens) const;
  /// InvalidInput for an id outside the vocabulary, or beyond the context.
  Status append(SequenceId id, std::span<const int32_t> tokens, llm_role role,
                Logits logits);
  /// InvalidInput for an id outside the vocabulary; see Scheduler::draft.
  Status draft(SequenceId id, std::span<const int32_t> tokens);
  void keep(SequenceId id, int64_t length) { scheduler->keep(id, length); }
  Status rollback(SequenceId id, int64_t length) {
    return scheduler->rollback(id, length);
  }
  int64_t length(SequenceId id) const { return scheduler->length(id); }
  const Scheduler::History &history(SequenceId id) const {
    return scheduler->history(id);
  }
  int64_t numResident() const { return scheduler->numResident(); }
  int64_t numWaiting() const { return scheduler->numWaiting(); }
  /// No sequence has a waiting token.
  bool idle() const { return scheduler->idle(); }

  /// What follows the token at `position` of `sequence`, valid during the call.
  using RowCallback = std::function<Status(
      SequenceId sequence, int64_t position, const LogitRow &row)>;
  /// Runs one step, then calls `row` for each row of logits, in the order of
  /// the step's tokens; not for tokens that an earlier call has rolled back.
  /// Does nothing when idle.
  Status step(const RowCallback &row);
  /// Brings a part of the weights into huge pages, as step does by itself when
  /// there have been some. True where some are left.
  bool settle();

  /// The rows that the program takes and gives beside tokens and logits.
  const SideRows &sideRows() const { return sides; }
  /// Who supplies and observes them; a program that takes some does not run
  /// without.
  void setSideCallbacks(SideCallbacks callbacks) {
    sideCallbacks = std::move(callbacks);
  }

  /// Time of each dispatch of the last step.
  struct Profile {
    const Plan *plan = nullptr;
    const artifact::Program *program = nullptr; ///< of the plan
    std::vector<int64_t> nanoseconds;
  };
  /// Starts or ends the recording; null while off.
  void setProfiling(bool on);
  const Profile *profile() const { return recorded.get(); }

private:
  Session() = default;
  Status setUp(SessionOptions options);
  Status findProgram();
  /// What a session of some size consists of.
  struct Sizes {
    StepArrays::Capacity capacity;
    Symbols largest;
    MemoryUse use;
  };
  int64_t chunkFor(const SessionOptions &options, int64_t sequences) const;
  int64_t rowsFor(const SessionOptions &options, int64_t sequences) const;
  Expected<Sizes> sizesFor(const SessionOptions &options, int64_t sequences,
                           int64_t slots) const;
  Expected<Sizes> chooseSizes(const SessionOptions &options) const;
  Status bind(const Symbols &largest);

  std::shared_ptr<const Artifact> artifact;
  std::unique_ptr<Device> executor;
  std::unique_ptr<CodeLoader> code;
  std::unique_ptr<Program> program;
  std::unique_ptr<Cache> cache;
  std::unique_ptr<StepArrays> arrays;
  std::unique_ptr<Scheduler> scheduler;
  Status verifyRows(std::string_view name, int64_t width,
                    const Symbols &largest) const;

  SideRows sides;
  SideCallbacks sideCallbacks;
  Allocation arena, logits;
  Speculation drafting;
  bool hasLogits = false;
  bool hasMaxima = false;
  Allocation maxima; ///< of blocks of logits, where the program writes them
  Sizes sizes;
  int32_t contextLength = 0;
  int numThreads = 1;
  int64_t steps = 0; ///< that have been run
  std::unique_ptr<Profile> recorded;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_SESSION_H
