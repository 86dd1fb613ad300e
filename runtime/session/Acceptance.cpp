//===- Acceptance.cpp - Whether a draft stays -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Acceptance.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace llm::runtime {

int32_t pick(std::span<const double> weights, double draw) {
  double target = draw * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0)
      continue;
    last = i;
    sum += weights[i];
    if (target < sum)
      break;
  }
  // Rounding may leave the last one with any weight.
  return static_cast<int32_t>(last);
}

void residual(std::span<const double> p, std::span<const double> q,
              std::vector<double> &out) {
  assert(p.size() == q.size());
  out.resize(p.size());
  double total = 0;
  for (size_t i = 0; i < p.size(); ++i)
    total += out[i] = std::max(0.0, p[i] - q[i]);
  if (total <= 0) {
    out.assign(p.begin(), p.end());
    return;
  }
  for (double &each : out)
    each /= total;
}

Verdict verdictOn(int32_t draft, std::span<const double> p,
                  std::span<const double> q, double acceptDraw,
                  double residualDraw) {
  auto index = static_cast<size_t>(draft);
  assert(q[index] > 0 && "what q never draws was drafted");
  if (acceptDraw * q[index] < p[index])
    return {true, draft};
  std::vector<double> rest;
  residual(p, q, rest);
  return {false, pick(rest, residualDraw)};
}

} // namespace llm::runtime
