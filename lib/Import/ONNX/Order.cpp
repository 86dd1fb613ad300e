//===- Order.cpp - Definitions before uses --------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Order.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

#include <queue>

namespace llm::importer {

using ::onnx::NodeProto;

/// Calls `use` with every name that the node or a subgraph of it reads. Names
/// that a subgraph defines itself are among them; they are no outputs of the
/// nodes around it.
static void forEachUse(const NodeProto &node,
                       llvm::function_ref<void(llvm::StringRef)> use) {
  for (const std::string &input : node.input())
    use(input);
  auto inGraph = [&](const ::onnx::GraphProto &graph) {
    for (const NodeProto &inner : graph.node())
      forEachUse(inner, use);
    for (const ::onnx::ValueInfoProto &output : graph.output())
      use(output.name());
  };
  for (const ::onnx::AttributeProto &attr : node.attribute()) {
    if (attr.has_g())
      inGraph(attr.g());
    for (const ::onnx::GraphProto &graph : attr.graphs())
      inGraph(graph);
  }
}

std::vector<const NodeProto *> inOrder(const NodeList &nodes) {
  llvm::StringMap<int> producer;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &output : nodes[i].output())
      if (!output.empty())
        producer.try_emplace(output, i);

  std::vector<std::vector<int>> users(nodes.size());
  std::vector<int> waiting(nodes.size(), 0);
  for (int i = 0; i < nodes.size(); ++i)
    forEachUse(nodes[i], [&](llvm::StringRef name) {
      auto it = producer.find(name);
      if (it == producer.end())
        return;
      users[it->second].push_back(i);
      ++waiting[i];
    });

  std::vector<const NodeProto *> order;
  std::vector<bool> placed(nodes.size(), false);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0)
      ready.push(i);
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    placed[i] = true;
    order.push_back(&nodes[i]);
    for (int user : users[i])
      if (--waiting[user] == 0)
        ready.push(user);
  }
  for (int i = 0; i < nodes.size(); ++i)
    if (!placed[i])
      order.push_back(&nodes[i]);
  return order;
}

} // namespace llm::importer
