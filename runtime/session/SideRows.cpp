//===- SideRows.cpp - What a step takes and gives beside logits -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/SideRows.h"

#include <algorithm>

namespace llm::runtime {

namespace {
constexpr std::string_view feedPrefix = "feed.", tapPrefix = "tap.";

Symbols sizes(int64_t tokens, int64_t rows) {
  Symbols symbols;
  symbols.values.fill(1);
  symbols[Symbols::T] = tokens;
  symbols[Symbols::R] = rows;
  return symbols;
}
} // namespace

Expected<SideRows> SideRows::find(const Program &program) {
  SideRows result;
  const artifact::Program &description = program.description();
  for (int i = 0; i < description.buffers_size(); ++i) {
    const artifact::Buffer &buffer = description.buffers(i);
    std::string_view name = buffer.name();
    bool tap = name.starts_with(tapPrefix);
    if (buffer.lifetime() != artifact::Buffer::IO ||
        (!tap && !name.starts_with(feedPrefix)))
      continue;
    SideBuffer side;
    side.name = name.substr((tap ? tapPrefix : feedPrefix).size());
    side.isTap = tap;
    LLM_ASSIGN_OR_RETURN(side.width, program.bufferElements(i, sizes(1, 1)));
    LLM_ASSIGN_OR_RETURN(int64_t tokens,
                         program.bufferElements(i, sizes(3, 1)));
    LLM_ASSIGN_OR_RETURN(int64_t rows, program.bufferElements(i, sizes(1, 3)));
    side.ofLogits = rows != side.width;
    int64_t grows = side.ofLogits ? rows : tokens;
    if (buffer.element_type() != artifact::F32 || side.width < 1 ||
        side.width > (int64_t(1) << 32) || grows != 3 * side.width ||
        (side.ofLogits && tokens != side.width))
      return Status::unsupported("the program's '" + std::string(name) +
                                 "' is not f32 with as many elements for each "
                                 "token or row of logits");
    for (const SideBuffer &other : result.list)
      if (other.name == side.name && other.isTap == side.isTap)
        return Status::invalidInput("the program has two buffers '" +
                                    std::string(name) + "'");
    result.list.push_back(std::move(side));
  }
  return result;
}

bool SideRows::givesAny() const {
  return std::any_of(list.begin(), list.end(),
                     [](const SideBuffer &buffer) { return buffer.isTap; });
}

bool SideRows::needsLogitRows() const {
  return std::any_of(list.begin(), list.end(),
                     [](const SideBuffer &buffer) { return buffer.ofLogits; });
}

Expected<uint64_t> SideRows::bytes(const Symbols &largest) const {
  uint64_t total = 0;
  for (const SideBuffer &buffer : list) {
    uint64_t size = 0;
    if (__builtin_mul_overflow(
            static_cast<uint64_t>(buffer.width) * sizeof(float),
            static_cast<uint64_t>(rowsOf(buffer, largest)), &size) ||
        __builtin_add_overflow(total, size, &total))
      return Status::resource("the program's '" + buffer.name +
                              "' is too large");
  }
  return total;
}

Status SideRows::allocate(const Symbols &largest) {
  memory.clear();
  for (const SideBuffer &buffer : list) {
    LLM_ASSIGN_OR_RETURN(
        Allocation rows,
        Allocation::create(static_cast<uint64_t>(buffer.width) *
                           static_cast<uint64_t>(rowsOf(buffer, largest)) *
                           sizeof(float)));
    memory.push_back(std::move(rows));
  }
  return Status::success();
}

std::optional<BufferRef> SideRows::find(std::string_view bufferName) const {
  bool tap = bufferName.starts_with(tapPrefix);
  if (!tap && !bufferName.starts_with(feedPrefix))
    return std::nullopt;
  bufferName.remove_prefix((tap ? tapPrefix : feedPrefix).size());
  for (size_t i = 0; i < memory.size(); ++i)
    if (list[i].isTap == tap && list[i].name == bufferName)
      return BufferRef{memory[i].data(), memory[i].size()};
  return std::nullopt;
}

Status SideRows::supply(const Symbols &step,
                        const SideCallbacks &callbacks) const {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].isTap)
      continue;
    if (!callbacks.supply)
      return Status::invalidInput("the program is a part of a decoder: it "
                                  "reads '" +
                                  list[i].name + "', which llm_probe supplies");
    LLM_RETURN_IF_ERROR(
        callbacks.supply(list[i], rowsOf(list[i], step),
                         reinterpret_cast<float *>(memory[i].data())));
  }
  return Status::success();
}

Status SideRows::observe(const Symbols &step,
                         const SideCallbacks &callbacks) const {
  for (size_t i = 0; callbacks.observe && i < list.size(); ++i)
    if (list[i].isTap)
      LLM_RETURN_IF_ERROR(
          callbacks.observe(list[i], rowsOf(list[i], step),
                            reinterpret_cast<const float *>(memory[i].data())));
  return Status::success();
}

} // namespace llm::runtime
