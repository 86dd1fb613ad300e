//===- Shadow.cpp - Who touched which byte --------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/Shadow.h"

namespace llm::runtime {

static bool ordered(const Moment &before, const Moment &now) {
  if (before.block != now.block)
    return false;
  if (before.thread == now.thread || before.epoch != now.epoch)
    return true;
  return before.warp() == now.warp() && before.warpEpoch != now.warpEpoch;
}

bool ShadowByte::Accesses::orderedBefore(const Moment &now) const {
  switch (crowd) {
  case None:
    return true;
  case One:
    return ordered(last, now);
  case Warp:
    return last.block == now.block &&
           (last.epoch != now.epoch ||
            (last.warp() == now.warp() && last.warpEpoch != now.warpEpoch));
  case Many:
    // Blocks run one after the other, so that those of an earlier epoch of this
    // block stand for nobody else.
    return last.block == now.block && other.block == now.block &&
           last.epoch != now.epoch;
  }
  return false;
}

void ShadowByte::Accesses::add(const Moment &now) {
  if (crowd == None || orderedBefore(now)) {
    // What comes after this one comes after all before it.
    crowd = One;
    last = now;
    return;
  }
  if (crowd == Many || last.block != now.block || last.warp() != now.warp()) {
    // An access of an earlier block is what `other` must keep.
    if (crowd != Many ||
        (other.block == now.block && last.thread != now.thread))
      other = last;
    crowd = Many;
  } else if (last.thread != now.thread) {
    crowd = Warp;
    other = last;
  }
  last = now;
}

Conflict ShadowByte::Accesses::conflict(const Moment &now, bool wrote) const {
  bool own = last.block == now.block && last.thread == now.thread;
  const Moment &with = own ? other : last;
  return {with.block, with.thread, with.site, wrote};
}

std::optional<Conflict> ShadowByte::read(const Moment &now) {
  if (!writes.orderedBefore(now))
    return writes.conflict(now, true);
  reads.add(now);
  return std::nullopt;
}

std::optional<Conflict> ShadowByte::write(const Moment &now, bool atomic) {
  bool together = atomic && writeAtomic;
  if (!together && !writes.orderedBefore(now))
    return writes.conflict(now, true);
  if (!reads.orderedBefore(now))
    return reads.conflict(now, false);
  if (together)
    writes.add(now);
  else
    writes = {now, now, One};
  writeAtomic = atomic;
  reads.crowd = None;
  return std::nullopt;
}

} // namespace llm::runtime
