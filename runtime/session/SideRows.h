//===- SideRows.h - What a step takes and gives beside logits ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_SIDEROWS_H
#define LLM_RUNTIME_SESSION_SIDEROWS_H

#include "runtime/core/Memory.h"
#include "runtime/device/Program.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// f32 [rows, width] under a name: the io buffers "feed.NAME", which a program
/// reads, and "tap.NAME", which it writes.
struct SideBuffer {
  std::string name; ///< NAME
  bool isTap = false;
  bool ofLogits = false; ///< a row per row of logits, else per token
  int64_t width = 0;
};

struct SideCallbacks {
  /// Fills [rows][width] before a step runs.
  std::function<Status(const SideBuffer &buffer, int64_t rows, float *data)>
      supply;
  /// Reads [rows][width] after it; may be empty.
  std::function<Status(const SideBuffer &buffer, int64_t rows,
                       const float *data)>
      observe;
};

/// The side rows of one program, and their memory.
class SideRows {
public:
  /// Unsupported for one that is not f32, or has not `width` elements for each
  /// token or each row of logits.
  static Expected<SideRows> find(const Program &program);

  bool givesAny() const;
  /// Whether some have a row per row of logits.
  bool needsLogitRows() const;
  const std::vector<SideBuffer> &buffers() const { return list; }
  /// What allocate() takes for a step of these sizes.
  Expected<uint64_t> bytes(const Symbols &largest) const;
  Status allocate(const Symbols &largest);
  /// The memory of the io buffer of this name.
  std::optional<BufferRef> find(std::string_view bufferName) const;

  /// Before a step: InvalidInput where nobody supplies what it reads.
  Status supply(const Symbols &step, const SideCallbacks &callbacks) const;
  /// After a step.
  Status observe(const Symbols &step, const SideCallbacks &callbacks) const;

private:
  static int64_t rowsOf(const SideBuffer &buffer, const Symbols &symbols) {
    return symbols[buffer.ofLogits ? Symbols::R : Symbols::T];
  }
  std::vector<SideBuffer> list;
  std::vector<Allocation> memory; ///< of each, once allocated
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_SIDEROWS_H
