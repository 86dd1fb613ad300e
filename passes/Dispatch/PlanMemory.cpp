//===- PlanMemory.cpp - Transient buffers in one arena --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Dispatch/Passes.h"

#include "dialects/RT/IR/RTDialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::llm {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/Dispatch/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::rt;

namespace {
constexpr int64_t kAlignment = 64;

/// A transient buffer with the phases between which it lives, inclusive.
struct Interval {
  BufferOp buffer;
  size_t index; ///< in program order, which breaks ties
  int64_t first;
  int64_t last;
  ExprAttr bytes;
};

/// A part of the arena: buffers follow each other in it.
struct Part {
  ExprAttr bytes;
  int64_t busyUntil;
  SmallVector<BufferOp> buffers;
};

/// The symbols of `expr`, sorted: buffers that grow with different symbols do
/// not share a part, or its size would be a maximum over both.
SmallVector<StringRef> symbolsOf(ExprAttr expr) {
  llvm::SetVector<StringRef> symbols;
  expr.walkSymbols([&](StringRef symbol) { symbols.insert(symbol); });
  SmallVector<StringRef> sorted(symbols.getArrayRef());
  llvm::sort(sorted);
  return sorted;
}

/// The size with every symbol 1: orders sizes over the same symbols.
int64_t unitSize(ExprAttr expr) {
  return expr.evaluate([](StringRef) { return std::optional<int64_t>(1); })
      .value_or(0);
}

struct PlanMemoryPass
    : public mlir::llm::impl::PlanMemoryPassBase<PlanMemoryPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      plan(program);
  }

  void plan(ProgramOp program) {
    SmallVector<Interval> intervals = collect(program);
    numBuffers += intervals.size();
    SmallVector<Part> parts;
    for (Interval &interval : intervals) {
      // The smallest free part that is large enough, else the largest one.
      Part *best = nullptr;
      int64_t want = unitSize(interval.bytes);
      for (Part &part : parts) {
        if (part.busyUntil >= interval.first ||
            symbolsOf(part.bytes) != symbolsOf(interval.bytes))
          continue;
        if (!best) {
          best = &part;
          continue;
        }
        int64_t have = unitSize(part.bytes), other = unitSize(best->bytes);
        bool fits = have >= want, otherFits = other >= want;
        if (fits != otherFits ? fits : (fits ? have < other : have > other))
          best = &part;
      }
      if (!best) {
        parts.push_back({interval.bytes, -1, {}});
        best = &parts.back();
      }
      best->bytes = ExprAttr::max(best->bytes, interval.bytes);
      best->busyUntil = interval.last;
      best->buffers.push_back(interval.buffer);
    }
    numParts += parts.size();
    ExprAttr offset = ExprAttr::constant(&getContext(), 0);
    for (Part &part : parts) {
      for (BufferOp buffer : part.buffers)
        buffer.setOffsetAttr(offset);
      offset = ExprAttr::add(offset, part.bytes.alignTo(kAlignment));
    }
    program.setArenaBytesAttr(offset);
  }

  static SmallVector<Interval> collect(ProgramOp program) {
    llvm::DenseMap<Operation *, int64_t> order;
    int64_t next = 0;
    for (auto dispatch : program.getBody().getOps<DispatchOp>())
      order[dispatch] = dispatch.getConcurrent() ? next - 1 : next++;
    SmallVector<Interval> intervals;
    for (auto buffer : program.getBody().getOps<BufferOp>()) {
      if (buffer.getLifetime() != Lifetime::transient || buffer->use_empty())
        continue;
      int64_t first = next, last = -1;
      for (Operation *user : buffer->getUsers()) {
        first = std::min(first, order.lookup(user));
        last = std::max(last, order.lookup(user));
      }
      Type element = buffer.getType().getElementType();
      int64_t width = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
      intervals.push_back({buffer, intervals.size(), first, last,
                           ExprAttr::mul(buffer.getElements(), width)});
    }
    llvm::sort(intervals, [](const Interval &a, const Interval &b) {
      return std::pair(a.first, a.index) < std::pair(b.first, b.index);
    });
    return intervals;
  }
};
} // namespace
