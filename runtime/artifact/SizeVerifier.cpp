//===- SizeVerifier.cpp - Whether a manifest's sizes can be had --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/ElementTypes.h"
#include "runtime/core/Expr.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace llm::runtime {

namespace {

using namespace artifact;

/// T, S, R, P, B, C in the certificate's order.
constexpr std::array<std::string_view, 6> symbolNames{"T", "S", "R",
                                                      "P", "B", "C"};
using Point = std::array<int64_t, symbolNames.size()>;
/// What a session computes in a step unless told otherwise.
constexpr int64_t stepTokens = 512;
constexpr int64_t arenaAlignment = 64;

/// Steps that every session may come to: one token without logits, as in the
/// middle of a prompt; one generated token; the longest prompt of one sequence,
/// with all logits.
std::array<Point, 3> steps(const Manifest &manifest) {
  int64_t context = std::max<int64_t>(1, manifest.generation().max_context());
  int64_t tokens = std::min(context, stepTokens);
  int64_t pages = 1, slots = context;
  for (const CacheGroup &group : manifest.cache_groups())
    if (int64_t page = group.page_size()) {
      pages = std::max(pages, (context + page - 1) / page);
      slots = std::max(slots, (context + page - 1) / page * page);
    }
  return {Point{1, 1, 0, 1, pages, slots}, Point{1, 1, 1, 0, pages, slots},
          Point{tokens, 1, tokens, tokens, pages, slots}};
}

std::string describe(const Point &point) {
  std::string text;
  for (size_t i = 0; i < point.size(); ++i)
    text += (i ? ", " : " at ") + std::string(symbolNames[i]) + "=" +
            std::to_string(point[i]);
  return text;
}

class SizeVerifier {
public:
  SizeVerifier(const Program &program, const Point &point)
      : program(program), point(point) {}

  Status run() {
    for (const std::string &name : program.symbols()) {
      auto found = std::find(symbolNames.begin(), symbolNames.end(), name);
      if (found == symbolNames.end())
        return Status::unsupported("a step has no symbol '" + name +
                                   "'; it has T, S, R, P, B and C");
      values.push_back(point[static_cast<size_t>(found - symbolNames.begin())]);
    }
    int64_t arena = 0;
    if (program.arena_bytes().nodes_size() > 0) {
      LLM_ASSIGN_OR_RETURN(
          arena,
          evaluateExpr(program.arena_bytes(), values).withContext("arena"));
    }
    for (int i = 0; i < program.buffers_size(); ++i) {
      const Buffer &each = program.buffers(i);
      LLM_RETURN_IF_ERROR(
          buffer(each, arena)
              .withContext(
                  "buffer " + std::to_string(i) +
                  (each.name().empty() ? "" : " '" + each.name() + "'")));
    }
    for (int i = 0; i < program.dispatches_size(); ++i)
      LLM_RETURN_IF_ERROR(
          dispatch(program.dispatches(i))
              .withContext(
                  "dispatch " + std::to_string(i) + " of '" +
                  program
                      .kernels(static_cast<int>(program.dispatches(i).kernel()))
                      .name() +
                  "'"));
    return Status::success();
  }

private:
  Status buffer(const Buffer &buffer, int64_t arena) {
    LLM_ASSIGN_OR_RETURN(int64_t count,
                         evaluateExpr(buffer.elements(), values));
    elements.push_back(count);
    std::optional<uint64_t> bytes = elementBytes(buffer.element_type(), count);
    if (!bytes)
      return Status::invalidInput("its size overflows");
    if (buffer.lifetime() != Buffer::TRANSIENT)
      return Status::success();
    LLM_ASSIGN_OR_RETURN(int64_t offset,
                         evaluateExpr(buffer.arena_offset(), values));
    if (offset > arena || *bytes > static_cast<uint64_t>(arena - offset))
      return Status::invalidInput("it does not lie in the arena");
    if (offset % arenaAlignment != 0)
      return Status::invalidInput("its offset is not a multiple of 64");
    return Status::success();
  }

  Status dispatch(const Dispatch &dispatch) {
    LLM_ASSIGN_OR_RETURN(int64_t grid, evaluateExpr(dispatch.grid(), values));
    bool writes = false;
    for (int i = static_cast<int>(dispatch.num_reads());
         i < dispatch.buffers_size(); ++i)
      writes |= elements[dispatch.buffers(i)] > 0;
    if (grid == 0 || !writes)
      return Status::success();
    for (const Expr &size : dispatch.sizes())
      LLM_RETURN_IF_ERROR(evaluateExpr(size, values));
    const Kernel &kernel = program.kernels(static_cast<int>(dispatch.kernel()));
    auto covers = [&](const Variant &variant) {
      return std::all_of(variant.ranges().begin(), variant.ranges().end(),
                         [&](const Range &range) {
                           int64_t value = values[range.symbol()];
                           return range.low() <= value && value <= range.high();
                         });
    };
    if (!std::any_of(kernel.variants().begin(), kernel.variants().end(),
                     covers))
      return Status::invalidInput("no variant covers these sizes");
    return Status::success();
  }

  const Program &program;
  const Point &point;
  std::vector<int64_t> values;
  std::vector<int64_t> elements;
};

} // namespace

Status verifySizes(const Manifest &manifest) {
  for (const Point &point : steps(manifest)) {
    for (int i = 0; i < manifest.programs_size(); ++i)
      LLM_RETURN_IF_ERROR(SizeVerifier(manifest.programs(i), point)
                              .run()
                              .withContext("program " + std::to_string(i) +
                                           " '" + manifest.programs(i).name() +
                                           "'" + describe(point)));
    const Expr &arena = manifest.certificate().arena_bytes();
    if (arena.nodes_size() > 0)
      LLM_RETURN_IF_ERROR(evaluateExpr(arena, point)
                              .withContext("certificate" + describe(point)));
  }
  return Status::success();
}

} // namespace llm::runtime
