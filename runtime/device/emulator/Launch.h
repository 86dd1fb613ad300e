//===- Launch.h - A launch while it runs ------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_EMULATOR_LAUNCH_H
#define LLM_RUNTIME_DEVICE_EMULATOR_LAUNCH_H

#include "runtime/device/emulator/Emulator.h"
#include "runtime/device/emulator/Fiber.h"
#include "runtime/device/emulator/Shadow.h"

#include <vector>

namespace llm::runtime {
class Launch;

/// An operation that all lanes of a mask perform together. Each lane hands in
/// its part and waits; the scheduler computes when all are there.
struct WarpOperation {
  enum Kind : uint8_t { Sync, Shuffle, Reduce, Vote, LoadMatrix, Multiply };
  Kind kind = Sync;
  int32_t variant = 0; ///< which shuffle, reduction, vote, matrix type
  uint32_t mask = 0;
  uint32_t site = 0;
  uint32_t value = 0;           ///< in and out
  uint32_t lane = 0, clamp = 0; ///< shuffles
  int32_t valid = 0;            ///< shuffles: out
  const void *row = nullptr;    ///< matrix loads
  uint32_t a[4], b[2];          ///< multiplications
  uint32_t words[4];            ///< matrix loads: out
  float c[4];                   ///< multiplications: in and out
};

struct AsyncCopy {
  char *to;
  const char *from;
  int32_t bytes, sourceBytes;
  uint32_t site;
};
} // namespace llm::runtime

/// One CUDA thread.
struct llm_emulator_thread {
  enum class State : uint8_t { Ready, AtBarrier, InWarp, Done };

  llm::runtime::Launch *launch = nullptr;
  int32_t index = 0; ///< in the block
  State state = State::Ready;
  uint32_t site = 0;     ///< where it waits
  int32_t barrierId = 0; ///< at a barrier
  llm::runtime::WarpOperation operation;
  llm::runtime::Fiber fiber;
  std::vector<llm::runtime::AsyncCopy> openCopies;
  std::vector<std::vector<llm::runtime::AsyncCopy>> copyGroups;
};

namespace llm::runtime {

using EmulatorThread = llm_emulator_thread;

/// Runs the blocks of one launch and keeps what is known of its memory.
class Launch {
public:
  Launch(const LaunchParams &params, FiberStacks &stacks);

  Expected<std::optional<Finding>> run();
  /// The body of a fiber.
  [[noreturn]] void runKernel(EmulatorThread &thread);

  // What threads call, on their fibers. A finding does not return.
  int32_t specialRegister(const EmulatorThread &thread, int32_t which) const;
  char *sharedMemory() { return shared; }
  void access(EmulatorThread &thread, uint32_t site, const void *address);
  void barrier(EmulatorThread &thread, uint32_t site, int32_t id);
  /// Waits for the other lanes of the operation; its results are in it then.
  void performInWarp(EmulatorThread &thread, const WarpOperation &operation);
  void startCopy(EmulatorThread &thread, const AsyncCopy &copy);
  void commitCopies(EmulatorThread &thread);
  void waitForCopies(EmulatorThread &thread, size_t pending);

private:
  static constexpr int32_t warpSize = 32;

  bool runBlock();
  bool runWarp(size_t first);
  bool resolveWarp(size_t first);
  bool resolveBarrier();
  void reportStall();
  std::optional<uint32_t>
  participants(size_t first, const EmulatorThread &thread, bool &waiting);
  void execute(size_t first, uint32_t lanes);
  bool executeShuffle(size_t first, uint32_t lanes);
  void executeReduce(size_t first, uint32_t lanes);
  void executeVote(size_t first, uint32_t lanes);
  bool executeLoadMatrix(size_t first, uint32_t lanes);
  bool executeMultiply(size_t first, uint32_t lanes);

  const llm_emulator_site &siteOf(uint32_t site) const;
  Moment momentOf(const EmulatorThread &thread, uint32_t site) const;
  Dim3 placeOfThread(int32_t index) const;
  Dim3 placeOfBlock(uint32_t number) const;
  /// Checks bounds, alignment and order of one access; false after a finding.
  bool check(EmulatorThread &thread, uint32_t site, int32_t space,
             int32_t access, const char *address, int64_t bytes,
             int64_t alignment);
  bool checkRange(EmulatorThread &thread, uint32_t site, int32_t space,
                  bool writes, const char *address, int64_t bytes,
                  bool &isShared);
  void report(Finding::Kind kind, const EmulatorThread &thread, uint32_t site,
              std::string message);
  Finding makeFinding(Finding::Kind kind, const EmulatorThread &thread,
                      uint32_t site, std::string message) const;
  void reportConflict(const EmulatorThread &thread, uint32_t site,
                      const Conflict &conflict, bool writes,
                      const std::string &where);
  std::string describeGlobal(const char *address) const;
  bool finishCopy(EmulatorThread &thread, const AsyncCopy &copy);
  template <typename Body> void onFiber(EmulatorThread &thread, Body body);
  /// Leaves the fiber for good.
  [[noreturn]] void abandon(EmulatorThread &thread);

  const LaunchParams &params;
  FiberStacks &stacks;
  std::vector<EmulatorThread> threads;
  std::vector<uint32_t> warpEpochs;
  uint32_t blockNumber = 0;
  uint32_t epoch = 0;
  std::vector<char> sharedStorage;
  char *shared = nullptr;
  std::vector<ShadowByte> sharedShadow;
  SparseShadow globalShadow;
  std::optional<Finding> finding;
  /// The first read of shared memory that nobody had written. It may turn out
  /// to be one half of a race; else it stands, before what follows from it.
  std::optional<Finding> suspicion;
  bool outOfMemory = false;

  bool stopped() const { return finding || outOfMemory; }
};

/// The table that kernels get.
const llm_emulator_api &emulatorApi();

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_EMULATOR_LAUNCH_H
