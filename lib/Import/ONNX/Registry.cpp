//===- Registry.cpp - The supported operators -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Registry.h"

#include "llvm/ADT/Twine.h"

namespace llm::importer {

Registry::Registry() {
  registerAttention(*this);
  registerControl(*this);
  registerElementwise(*this);
  registerIndexing(*this);
  registerMatmul(*this);
  registerMovement(*this);
  registerNormalization(*this);
  registerQuantization(*this);
  registerReduction(*this);
  registerShape(*this);
}

static std::string keyOf(llvm::StringRef domain, llvm::StringRef name) {
  return (domain + llvm::Twine('\0') + name).str();
}

void Registry::add(llvm::StringRef domain, llvm::StringRef name, Operator op) {
  // The versions of another domain start anew.
  if (!domain.empty() && op.since == kMinOpset)
    op.since = 1;
  operators[keyOf(domain, name)].push_back(op);
}

const Operator *Registry::find(llvm::StringRef domain, llvm::StringRef name,
                               int64_t version) const {
  auto it = operators.find(keyOf(domain, name));
  if (it == operators.end())
    return nullptr;
  for (const Operator &op : it->second)
    if (op.since <= version && version <= op.until)
      return &op;
  return nullptr;
}

std::string Registry::versions(llvm::StringRef domain,
                               llvm::StringRef name) const {
  auto it = operators.find(keyOf(domain, name));
  if (it == operators.end())
    return "";
  int64_t since = kMaxOpset, until = 0;
  for (const Operator &op : it->second) {
    since = std::min(since, op.since);
    until = std::max(until, op.until);
  }
  if (until > kMaxOpset)
    return std::to_string(since) + " and later";
  return std::to_string(since) + " to " + std::to_string(until);
}

} // namespace llm::importer
