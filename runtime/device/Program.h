//===- Program.h - A program of an artifact, ready to run -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_PROGRAM_H
#define LLM_RUNTIME_DEVICE_PROGRAM_H

#include "runtime/artifact/Artifact.h"
#include "runtime/device/Device.h"

#include <array>
#include <functional>
#include <map>
#include <vector>

namespace llm::runtime {

/// The symbols of a step (include/llm/ABI/step.h), in the order in which the
/// memory certificate numbers them.
struct Symbols {
  enum Index { T, S, R, P, B, C, count };
  std::array<int64_t, count> values{};

  int64_t &operator[](Index index) { return values[index]; }
  int64_t operator[](Index index) const { return values[index]; }
  bool operator==(const Symbols &) const = default;
  /// "T=1, S=1, ..."
  std::string toString() const;
};

/// The code objects of an artifact that a device can run, loaded when first
/// needed.
class CodeLoader {
public:
  CodeLoader(std::shared_ptr<const Artifact> artifact, Device &device)
      : artifact(std::move(artifact)), device(device) {}
  /// The function `entry` of code payload `payload`.
  Expected<const void *> find(uint32_t payload, const std::string &entry);
  Device &getDevice() const { return device; }

private:
  std::shared_ptr<const Artifact> artifact;
  Device &device;
  std::map<uint32_t, std::unique_ptr<CodeObject>> objects;
};

/// A program resolved for one symbol vector.
class Plan {
public:
  const Symbols &symbols() const { return key; }
  std::span<const DispatchCall> calls() const { return list; }

private:
  friend class Program;
  Symbols key;
  std::vector<DispatchCall> list;
  std::vector<void *> buffers;
  std::vector<uint64_t> bytes;
  std::vector<int64_t> sizes;
};

/// A program with its functions looked up and its buffers bound. Keeps the
/// plans of recent symbol vectors.
class Program {
public:
  /// Finds the functions of program `index`. Unsupported if a kernel has no
  /// variant for this machine, naming the features that are missing, or if the
  /// program has a symbol that a step does not.
  static Expected<std::unique_ptr<Program>>
  load(std::shared_ptr<const Artifact> artifact, int index, CodeLoader &code);

  const artifact::Program &description() const { return program; }

  /// Bytes of arena under `symbols`.
  Expected<int64_t> arenaBytes(const Symbols &symbols) const;
  /// Elements of buffer `index` under `symbols`.
  Expected<int64_t> bufferElements(int index, const Symbols &symbols) const;

  /// Binds the arena and, through `lookup`, every io and state buffer. `lookup`
  /// fails for a name that the caller does not have.
  Status bind(BufferRef arena,
              const std::function<Expected<BufferRef>(const artifact::Buffer &)>
                  &lookup);

  /// The plan for `symbols`, which stays valid until the next call. Every
  /// buffer is checked to lie in what it was bound to. Dispatches that have
  /// nothing to write are left out.
  Expected<const Plan *> plan(const Symbols &symbols);

private:
  Program(std::shared_ptr<const Artifact> artifact,
          const artifact::Program &program)
      : artifact(std::move(artifact)), program(program) {}
  Status resolve(Plan &plan) const;
  Status resolveDispatch(const artifact::Dispatch &dispatch,
                         std::span<const BufferRef> refs,
                         std::span<const int64_t> elements,
                         std::span<const int64_t> values, size_t phaseStart,
                         Plan &plan) const;
  std::vector<int64_t> programSymbols(const Symbols &symbols) const;

  std::shared_ptr<const Artifact> artifact;
  const artifact::Program &program;
  /// For each symbol of the program, the step's.
  std::vector<Symbols::Index> symbolIndex;
  /// For each kernel, its variants' functions; null where this machine lacks
  /// something.
  std::vector<std::vector<const void *>> functions;
  BufferRef arena;
  std::vector<BufferRef> bound;
  std::vector<std::unique_ptr<Plan>> plans;
  size_t nextVictim = 0;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_PROGRAM_H
