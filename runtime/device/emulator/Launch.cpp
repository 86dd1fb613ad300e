//===- Launch.cpp - The scheduler of a launch -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/Launch.h"

#include <algorithm>
#include <cstring>

namespace llm::runtime {

using State = EmulatorThread::State;

static std::string placeText(const Dim3 &place) {
  return "(" + std::to_string(place[0]) + ", " + std::to_string(place[1]) +
         ", " + std::to_string(place[2]) + ")";
}

std::string Finding::toString() const {
  std::string_view name;
  switch (kind) {
  case Kind::OutOfBounds:
    name = "out-of-bounds access";
    break;
  case Kind::ReadOnly:
    name = "write to a read-only operand";
    break;
  case Kind::Misaligned:
    name = "misaligned access";
    break;
  case Kind::Uninitialised:
    name = "read of uninitialised shared memory";
    break;
  case Kind::Race:
    name = "race";
    break;
  case Kind::Divergence:
    name = "divergence";
    break;
  case Kind::Deadlock:
    name = "deadlock";
    break;
  }
  return std::string(name) + " in kernel '" + kernel + "', block " +
         placeText(block) + ", thread " + placeText(thread) + ", at '" +
         location + "': " + message;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Launch::Launch(const LaunchParams &params, FiberStacks &stacks)
    : params(params), stacks(stacks) {
  auto count =
      static_cast<size_t>(params.block[0] * params.block[1] * params.block[2]);
  threads.resize(count);
  for (size_t i = 0; i < count; ++i) {
    threads[i].launch = this;
    threads[i].index = static_cast<int32_t>(i);
  }
  warpEpochs.resize((count + warpSize - 1) / warpSize);
  constexpr size_t alignment = 1024;
  sharedStorage.resize(params.kernel->shared_bytes + alignment);
  auto address = reinterpret_cast<uintptr_t>(sharedStorage.data());
  shared = sharedStorage.data() + (alignment - address % alignment) % alignment;
}

Expected<std::optional<Finding>> Launch::run() {
  int64_t blocks = params.grid[0] * params.grid[1] * params.grid[2];
  for (int64_t block = 0; block < blocks; ++block) {
    blockNumber = static_cast<uint32_t>(block);
    if (runBlock())
      continue;
    if (outOfMemory)
      return Status::resource("no memory for the checks of kernel '" +
                              std::string(params.kernel->name) + "'");
    return std::move(finding);
  }
  return std::optional<Finding>();
}

/// What a fiber runs.
static void runThread(void *argument) {
  auto &thread = *static_cast<EmulatorThread *>(argument);
  thread.launch->runKernel(thread);
}

void Launch::runKernel(EmulatorThread &thread) {
  params.kernel->function(&emulatorApi(), &thread, params.buffers.data(),
                          params.sizes.data());
  thread.state = State::Done;
  thread.fiber.suspend();
  __builtin_unreachable();
}

bool Launch::runBlock() {
  ++epoch;
  sharedShadow.assign(params.kernel->shared_bytes, ShadowByte());
  std::memset(shared, 0xcd, params.kernel->shared_bytes);
  for (size_t i = 0; i < threads.size(); ++i) {
    EmulatorThread &thread = threads[i];
    thread.state = State::Ready;
    thread.openCopies.clear();
    thread.copyGroups.clear();
    thread.fiber.prepare(stacks.base(i), runThread, &thread);
  }
  for (;;) {
    bool progress = false;
    for (size_t first = 0; first < threads.size(); first += warpSize) {
      while (runWarp(first))
        progress = true;
      if (stopped())
        return false;
    }
    if (std::all_of(threads.begin(), threads.end(), [](const auto &thread) {
          return thread.state == State::Done;
        })) {
      finding = std::move(suspicion);
      return !finding;
    }
    if (resolveBarrier() || progress)
      continue;
    if (!finding)
      reportStall();
    return false;
  }
}

/// Runs the ready threads of a warp until each waits, then completes what they
/// wait for in the warp. False if nothing moved.
bool Launch::runWarp(size_t first) {
  bool progress = false;
  size_t end = std::min(first + warpSize, threads.size());
  for (size_t i = first; i < end; ++i) {
    if (threads[i].state != State::Ready)
      continue;
    threads[i].fiber.resume();
    if (stopped())
      return false;
    progress = true;
  }
  return (resolveWarp(first) || progress) && !finding;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void Launch::barrier(EmulatorThread &thread, uint32_t site, int32_t id) {
  thread.state = State::AtBarrier;
  thread.site = site;
  thread.barrierId = id;
  thread.fiber.suspend();
}

/// Lets all threads go on if all are at one barrier.
bool Launch::resolveBarrier() {
  const EmulatorThread &first = threads.front();
  for (const EmulatorThread &thread : threads)
    if (thread.state != State::AtBarrier ||
        thread.barrierId != first.barrierId || thread.site != first.site)
      return false;
  for (EmulatorThread &thread : threads)
    thread.state = State::Ready;
  ++epoch;
  return true;
}

/// No thread can go on: says why.
void Launch::reportStall() {
  auto find = [&](auto predicate) -> const EmulatorThread * {
    auto it = std::find_if(threads.begin(), threads.end(), predicate);
    return it == threads.end() ? nullptr : &*it;
  };
  auto threadText = [&](const EmulatorThread &thread) {
    return "thread " + placeText(placeOfThread(thread.index));
  };
  auto siteText = [&](const EmulatorThread &thread) {
    return "'" + std::string(siteOf(thread.site).location) + "'";
  };
  const EmulatorThread *waiting =
      find([](const auto &t) { return t.state == State::AtBarrier; });
  const EmulatorThread *inWarp =
      find([](const auto &t) { return t.state == State::InWarp; });
  if (!waiting) {
    report(Finding::Kind::Deadlock, *inWarp, inWarp->site,
           "it waits for lanes of its warp that never come");
    return;
  }
  if (inWarp) {
    report(Finding::Kind::Divergence, *waiting, waiting->site,
           "it waits at a barrier while " + threadText(*inWarp) +
               " waits for its warp at " + siteText(*inWarp));
    return;
  }
  if (const EmulatorThread *done =
          find([](const auto &t) { return t.state == State::Done; })) {
    report(Finding::Kind::Divergence, *waiting, waiting->site,
           "it waits at a barrier that " + threadText(*done) +
               " does not reach: it has ended");
    return;
  }
  const EmulatorThread *other = find([&](const auto &t) {
    return t.barrierId != waiting->barrierId || t.site != waiting->site;
  });
  report(Finding::Kind::Divergence, *waiting, waiting->site,
         "it waits at a barrier while " + threadText(*other) +
             " waits at another one, at " + siteText(*other));
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

const llm_emulator_site &Launch::siteOf(uint32_t site) const {
  static const llm_emulator_site unknown = {"unknown location", 0, 0, 0, 0};
  return site < params.kernel->num_sites ? params.kernel->sites[site] : unknown;
}

Dim3 Launch::placeOfThread(int32_t index) const {
  const Dim3 &size = params.block;
  return {index % size[0], index / size[0] % size[1],
          index / size[0] / size[1]};
}

Dim3 Launch::placeOfBlock(uint32_t number) const {
  const Dim3 &size = params.grid;
  return {number % size[0], number / size[0] % size[1],
          number / size[0] / size[1]};
}

Finding Launch::makeFinding(Finding::Kind kind, const EmulatorThread &thread,
                            uint32_t site, std::string message) const {
  Finding result;
  result.kind = kind;
  result.kernel = params.kernel->name;
  result.block = placeOfBlock(blockNumber);
  result.thread = placeOfThread(thread.index);
  result.location = siteOf(site).location;
  result.message = std::move(message);
  return result;
}

void Launch::report(Finding::Kind kind, const EmulatorThread &thread,
                    uint32_t site, std::string message) {
  if (finding)
    return;
  if (suspicion && kind != Finding::Kind::Race)
    finding = std::move(suspicion);
  else
    finding = makeFinding(kind, thread, site, std::move(message));
}

void Launch::reportConflict(const EmulatorThread &thread, uint32_t site,
                            const Conflict &conflict, bool writes,
                            const std::string &where) {
  std::string other = "thread " + placeText(placeOfThread(conflict.thread));
  if (conflict.block != blockNumber)
    other += " of block " + placeText(placeOfBlock(conflict.block));
  report(Finding::Kind::Race, thread, site,
         std::string("it ") + (writes ? "writes" : "reads") + " " + where +
             ", which " + other + (conflict.wrote ? " wrote" : " read") +
             " at '" + siteOf(conflict.site).location + "', with no " +
             (conflict.block != blockNumber ? "order between blocks"
                                            : "barrier between"));
}

int32_t Launch::specialRegister(const EmulatorThread &thread,
                                int32_t which) const {
  Dim3 inBlock = placeOfThread(thread.index);
  Dim3 inGrid = placeOfBlock(blockNumber);
  auto axis = [&](const Dim3 &dims, int first) {
    return static_cast<int32_t>(dims[static_cast<size_t>(which - first)]);
  };
  if (which <= LLM_EMULATOR_THREAD_Z)
    return axis(inBlock, LLM_EMULATOR_THREAD_X);
  if (which <= LLM_EMULATOR_BLOCK_Z)
    return axis(inGrid, LLM_EMULATOR_BLOCK_X);
  if (which <= LLM_EMULATOR_BLOCK_SIZE_Z)
    return axis(params.block, LLM_EMULATOR_BLOCK_SIZE_X);
  if (which <= LLM_EMULATOR_GRID_SIZE_Z)
    return axis(params.grid, LLM_EMULATOR_GRID_SIZE_X);
  if (which == LLM_EMULATOR_LANE)
    return thread.index % warpSize;
  if (which == LLM_EMULATOR_WARP)
    return thread.index / warpSize;
  return warpSize;
}

} // namespace llm::runtime
