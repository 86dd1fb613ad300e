//===- DispatchCost.cpp - What a dispatch has to move and compute ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands are in the order of docs/formats/kernel-families.md.
//
#include "tools/llm-run/DispatchCost.h"
#include "runtime/artifact/ElementTypes.h"

#include <algorithm>

namespace llm::run {

using namespace runtime;

namespace {

/// One call with what the manifest says of its operands.
class Call {
public:
  Call(const Session::Profile &step, size_t index,
       const artifact::Manifest &manifest)
      : call(step.plan->calls()[index]), symbols(step.plan->symbols()),
        program(*step.program), manifest(manifest) {}

  DispatchCost cost() const {
    const std::string &family = call.kernel->family();
    DispatchCost result;
    // A family is a name that the file gives: nothing is taken for granted.
    if (outputs() >= call.bytes.size())
      return result;
    if (family == "attention")
      return isAttention() ? attention() : result;
    if (family == "gather_rows" || family == "attention_merge") {
      // What is read is what is written, or little more.
      result.bytes = 2 * static_cast<double>(call.bytes[outputs()]);
      return result;
    }
    if (family == "linear" && !call.sizes.empty())
      result = linear();
    for (size_t i = 0; i < call.bytes.size(); ++i)
      result.bytes += bytesOf(i);
    return result;
  }

private:
  /// The first operand that is written.
  size_t outputs() const {
    return static_cast<size_t>(call.dispatch->num_reads());
  }
  const artifact::Buffer &buffer(size_t operand) const {
    return program.buffers(
        static_cast<int>(call.dispatch->buffers(static_cast<int>(operand))));
  }
  const artifact::CacheGroup &group(size_t operand) const {
    return manifest.cache_groups(static_cast<int>(buffer(operand).group()));
  }
  /// Bytes of a slot of the cache in the plane of an operand.
  double slotBytes(size_t operand) const {
    const artifact::Plane &plane =
        group(operand).planes(static_cast<int>(buffer(operand).plane()));
    double bytes = elementBits(plane.element_type()) / 8.0;
    for (int64_t size : plane.shape())
      bytes *= static_cast<double>(size);
    return bytes;
  }
  double tokens() const { return static_cast<double>(symbols[Symbols::T]); }

  double bytesOf(size_t operand) const {
    if (buffer(operand).lifetime() == artifact::Buffer::STATE)
      return tokens() * slotBytes(operand);
    auto bytes = static_cast<double>(call.bytes[operand]);
    const std::string &family = call.kernel->family();
    bool table =
        buffer(operand).lifetime() == artifact::Buffer::CONSTANT &&
        (family == "embedding" || family == "rope" || family == "kv_append");
    if (!table)
      return bytes;
    const artifact::Weight &weight = weightOf(operand);
    double rows = weight.logical_shape_size()
                      ? static_cast<double>(weight.logical_shape(0))
                      : 1;
    return bytes * std::min(1.0, tokens() / std::max(rows, 1.0));
  }

  const artifact::Weight &weightOf(size_t operand) const {
    return manifest.weights(static_cast<int>(buffer(operand).weight()));
  }

  /// Twice the rows, times the elements of the weights.
  DispatchCost linear() const {
    DispatchCost result;
    for (size_t i = 0; i < call.bytes.size(); ++i) {
      // A bias has one axis.
      if (buffer(i).lifetime() != artifact::Buffer::CONSTANT ||
          weightOf(i).logical_shape_size() != 2)
        continue;
      double operations = 2 * static_cast<double>(call.sizes[0]);
      for (int64_t size : weightOf(i).logical_shape())
        operations *= static_cast<double>(size);
      result.operations += operations;
    }
    artifact::ElementType input = buffer(0).element_type();
    result.limit = input == artifact::I8     ? &MachineLimits::int8
                   : input == artifact::BF16 ? &MachineLimits::bf16
                                             : &MachineLimits::f32;
    return result;
  }

  enum Operand { Q, K, V, Sequence, Begin, Length };

  /// Whether the operands are those of the family.
  bool isAttention() const {
    auto sequences = static_cast<uint64_t>(symbols[Symbols::S]);
    return outputs() > Length &&
           buffer(K).lifetime() == artifact::Buffer::STATE &&
           call.bytes[Begin] >= 4 * (sequences + 1) &&
           call.bytes[Length] >= 4 * sequences;
  }

  /// A slot of the cache is read once for each sequence that sees it; a query
  /// meets the slots up to its own, in its window.
  DispatchCost attention() const {
    const auto *begin = static_cast<const int32_t *>(call.buffers[Begin]);
    const auto *length = static_cast<const int32_t *>(call.buffers[Length]);
    auto window = static_cast<int64_t>(group(K).window());
    double slots = 0, pairs = 0;
    for (int64_t s = 0; s < symbols[Symbols::S]; ++s) {
      int64_t queries = std::clamp<int64_t>(int64_t(begin[s + 1]) - begin[s], 0,
                                            symbols[Symbols::T]);
      int64_t first = length[s] - queries;
      for (int64_t q = 0; q < queries; ++q)
        pairs += static_cast<double>(window ? std::min(window, first + q + 1)
                                            : first + q + 1);
      int64_t seen = window ? std::min<int64_t>(length[s], window + queries - 1)
                            : length[s];
      slots += queries ? static_cast<double>(seen) : 0;
    }
    size_t out = outputs();
    DispatchCost result;
    result.bytes = static_cast<double>(call.bytes[Q]) +
                   static_cast<double>(call.bytes[out]);
    for (size_t i = 0; i < out; ++i)
      if (buffer(i).lifetime() == artifact::Buffer::STATE)
        result.bytes += slots * slotBytes(i);
    // Rows of q and of the output are f32.
    double width = static_cast<double>(call.bytes[Q] + call.bytes[out]) / 4;
    result.operations = 2 * pairs * width / std::max(tokens(), 1.0);
    result.limit = buffer(K).element_type() == artifact::F32
                       ? &MachineLimits::f32
                       : &MachineLimits::bf16;
    return result;
  }

  const DispatchCall &call;
  const Symbols &symbols;
  const artifact::Program &program;
  const artifact::Manifest &manifest;
};

} // namespace

DispatchCost costOf(const Session::Profile &step, size_t index,
                    const artifact::Manifest &manifest) {
  return Call(step, index, manifest).cost();
}

} // namespace llm::run
