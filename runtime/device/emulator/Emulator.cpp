//===- Emulator.cpp - GPU kernels on the CPU, checked ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/Emulator.h"

#include "runtime/device/emulator/Launch.h"

#include <cstring>
#include <limits>

namespace llm::runtime {

//===----------------------------------------------------------------------===//
// What kernels call
//===----------------------------------------------------------------------===//

static uint32_t performValue(EmulatorThread *thread, uint32_t site,
                             WarpOperation::Kind kind, int32_t variant,
                             uint32_t mask, uint32_t value) {
  WarpOperation operation;
  operation.kind = kind;
  operation.variant = variant;
  operation.mask = mask;
  operation.site = site;
  operation.value = value;
  thread->launch->performInWarp(*thread, operation);
  return thread->operation.value;
}

static int32_t specialRegister(EmulatorThread *thread, int32_t which) {
  return thread->launch->specialRegister(*thread, which);
}

static void *shared(EmulatorThread *thread) {
  return thread->launch->sharedMemory();
}

static void access(EmulatorThread *thread, uint32_t site, const void *address) {
  thread->launch->access(*thread, site, address);
}

static void barrier(EmulatorThread *thread, uint32_t site, int32_t id) {
  thread->launch->barrier(*thread, site, id);
}

static void syncWarp(EmulatorThread *thread, uint32_t site, uint32_t mask) {
  performValue(thread, site, WarpOperation::Sync, 0, mask, 0);
}

static uint32_t shuffle(EmulatorThread *thread, uint32_t site, int32_t kind,
                        uint32_t mask, uint32_t value, uint32_t lane,
                        uint32_t clamp, int32_t *valid) {
  WarpOperation operation;
  operation.kind = WarpOperation::Shuffle;
  operation.variant = kind;
  operation.mask = mask;
  operation.site = site;
  operation.value = value;
  operation.lane = lane;
  operation.clamp = clamp;
  thread->launch->performInWarp(*thread, operation);
  *valid = thread->operation.valid;
  return thread->operation.value;
}

static uint32_t reduce(EmulatorThread *thread, uint32_t site, int32_t kind,
                       uint32_t mask, uint32_t value) {
  return performValue(thread, site, WarpOperation::Reduce, kind, mask, value);
}

static uint32_t vote(EmulatorThread *thread, uint32_t site, int32_t kind,
                     uint32_t mask, int32_t predicate) {
  return performValue(thread, site, WarpOperation::Vote, kind, mask,
                      predicate != 0);
}

static void loadMatrix(EmulatorThread *thread, uint32_t site, uint32_t *out,
                       const void *row, int32_t count, int32_t transposed) {
  WarpOperation operation;
  operation.kind = WarpOperation::LoadMatrix;
  operation.variant = count << 1 | (transposed != 0);
  operation.mask = ~uint32_t(0);
  operation.site = site;
  operation.row = row;
  thread->launch->performInWarp(*thread, operation);
  std::memcpy(out, thread->operation.words,
              static_cast<size_t>(count) * sizeof(uint32_t));
}

static void multiplyMatrix(EmulatorThread *thread, uint32_t site, int32_t kind,
                           float *d, const uint32_t *a, const uint32_t *b,
                           const float *c) {
  WarpOperation operation;
  operation.kind = WarpOperation::Multiply;
  operation.variant = kind;
  operation.mask = ~uint32_t(0);
  operation.site = site;
  std::memcpy(operation.a, a, sizeof(operation.a));
  std::memcpy(operation.b, b, sizeof(operation.b));
  std::memcpy(operation.c, c, sizeof(operation.c));
  thread->launch->performInWarp(*thread, operation);
  std::memcpy(d, thread->operation.c, sizeof(operation.c));
}

static void copyAsync(EmulatorThread *thread, uint32_t site, void *to,
                      const void *from, int32_t bytes, int32_t sourceBytes) {
  thread->launch->startCopy(*thread, {static_cast<char *>(to),
                                      static_cast<const char *>(from), bytes,
                                      sourceBytes, site});
}

static void commitCopies(EmulatorThread *thread) {
  thread->launch->commitCopies(*thread);
}

static void waitCopies(EmulatorThread *thread, uint32_t, int32_t pending) {
  thread->launch->waitForCopies(*thread, static_cast<size_t>(pending));
}

const llm_emulator_api &emulatorApi() {
  static const llm_emulator_api api = {LLM_EMULATOR_ABI_VERSION,
                                       0,
                                       specialRegister,
                                       shared,
                                       access,
                                       barrier,
                                       syncWarp,
                                       shuffle,
                                       reduce,
                                       vote,
                                       loadMatrix,
                                       multiplyMatrix,
                                       copyAsync,
                                       commitCopies,
                                       waitCopies};
  return api;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Emulator::Emulator() = default;
Emulator::~Emulator() = default;

/// What a GPU of compute capability 8 or 9 takes.
static Status checkShape(const LaunchParams &params, int64_t &threads) {
  constexpr int64_t maxThreads = 1024, maxGridYZ = 65535;
  constexpr int64_t maxGridX = std::numeric_limits<int32_t>::max();
  threads = 1;
  for (int64_t extent : params.block) {
    if (extent < 1 || extent > maxThreads)
      return Status::invalidInput("a block has 1 to 1024 threads along x and "
                                  "y");
    threads *= extent;
  }
  if (threads > maxThreads)
    return Status::invalidInput("a block of " + std::to_string(threads) +
                                " threads is too large, a GPU takes " +
                                std::to_string(maxThreads));
  const Dim3 &grid = params.grid;
  if (grid[0] < 1 || grid[0] > maxGridX || grid[1] < 1 || grid[1] > maxGridYZ ||
      grid[2] < 1 || grid[2] > maxGridYZ ||
      grid[0] > maxGridX / grid[1] / grid[2])
    return Status::invalidInput("a grid of " + std::to_string(grid[0]) + " x " +
                                std::to_string(grid[1]) + " x " +
                                std::to_string(grid[2]) +
                                " blocks is not within a GPU's limits");
  return Status::success();
}

Expected<std::optional<Finding>> Emulator::launch(const LaunchParams &params) {
  const llm_emulator_kernel &kernel = *params.kernel;
  if (kernel.abi_version != LLM_EMULATOR_ABI_VERSION)
    return Status::unsupported(
        "kernel has emulator ABI version " +
        std::to_string(kernel.abi_version) + ", this runtime has version " +
        std::to_string(LLM_EMULATOR_ABI_VERSION) +
        ": compile the model again with the llm-compile of this release");
  if (params.buffers.size() != kernel.num_buffers ||
      params.bytes.size() != kernel.num_buffers ||
      params.sizes.size() != kernel.num_sizes ||
      params.numReads > params.buffers.size())
    return Status::invalidInput(
        "kernel '" + std::string(kernel.name) + "' takes " +
        std::to_string(kernel.num_buffers) + " buffers and " +
        std::to_string(kernel.num_sizes) + " sizes, not " +
        std::to_string(params.buffers.size()) + " and " +
        std::to_string(params.sizes.size()));
  int64_t threads = 0;
  LLM_RETURN_IF_ERROR(checkShape(params, threads));
  if (kernel.block_threads && threads != kernel.block_threads)
    return Status::invalidInput("kernel '" + std::string(kernel.name) +
                                "' is compiled for blocks of " +
                                std::to_string(kernel.block_threads) +
                                " threads, not " + std::to_string(threads));
  if (!stacks || stacks->size() < static_cast<size_t>(threads)) {
    stacks.reset();
    stacks = FiberStacks::create(static_cast<size_t>(threads));
    if (!stacks)
      return Status::resource("no memory for the stacks of " +
                              std::to_string(threads) + " emulated threads");
  }
  return catchExceptions([&]() -> Expected<std::optional<Finding>> {
    Launch launch(params, *stacks);
    return launch.run();
  });
}

} // namespace llm::runtime
