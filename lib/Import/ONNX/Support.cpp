//===- Support.cpp - Is a model supported at all? -------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Support.h"

#include "lib/Import/ONNX/Graph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace llm::importer {

std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  std::string key(normalDomain(domain));
  key += '\0';
  key += name;
  key += '\0';
  key += overload;
  return key;
}

LogicalResult checkOpsets(const llvm::StringMap<int64_t> &opsets,
                          EmitError emitError) {
  auto check = [&](StringRef domain, StringRef shown, int64_t min,
                   int64_t max) -> LogicalResult {
    auto it = opsets.find(domain);
    if (it == opsets.end() || (it->second >= min && it->second <= max))
      return success();
    InFlightDiagnostic diag = emitError();
    diag << "operator set " << it->second << " of the domain '" << shown
         << "' is not supported; ";
    if (min == max)
      return diag << "version " << min << " is";
    return diag << "versions " << min << " to " << max << " are";
  };
  if (failed(check("", "ai.onnx", kMinOpset, kMaxOpset)))
    return failure();
  return check(kMicrosoft, kMicrosoft, 1, 1);
}

namespace {

class SupportCheck {
public:
  SupportCheck(const Registry &registry,
               const llvm::StringMap<llvm::StringMap<int64_t>> &functionOpsets,
               const llvm::StringMap<const ::onnx::FunctionProto *> &functions,
               EmitError emitError)
      : registry(registry), functionOpsets(functionOpsets),
        functions(functions), emitError(emitError) {}

  template <typename Nodes>
  LogicalResult walk(const Nodes &nodes, const llvm::StringMap<int64_t> &opsets,
                     int depth) {
    if (depth > kMaxDepth)
      return emitError() << "functions and subgraphs nest more than "
                         << kMaxDepth << " deep";
    for (const ::onnx::NodeProto &node : nodes)
      if (failed(visit(node, opsets, depth)))
        return failure();
    return success();
  }

  LogicalResult report() {
    if (unsupported.empty())
      return success();
    InFlightDiagnostic diag = emitError();
    diag << unsupported.size()
         << (unsupported.size() == 1 ? " operator is" : " operators are")
         << " not supported: ";
    llvm::interleaveComma(unsupported, diag, [&](const auto &entry) {
      const Found &found = entry.second;
      diag << entry.first << " (" << found.count
           << (found.count == 1 ? " node, '" : " nodes, first '") << found.first
           << "')";
    });
    return diag;
  }

private:
  struct Found {
    unsigned count = 0;
    std::string first;
  };

  LogicalResult visit(const ::onnx::NodeProto &node,
                      const llvm::StringMap<int64_t> &opsets, int depth) {
    for (const ::onnx::AttributeProto &attr : node.attribute()) {
      if (attr.has_g() && failed(walk(attr.g().node(), opsets, depth + 1)))
        return failure();
      for (const ::onnx::GraphProto &graph : attr.graphs())
        if (failed(walk(graph.node(), opsets, depth + 1)))
          return failure();
    }
    std::string key =
        functionKey(node.domain(), node.op_type(), node.overload());
    auto function = functions.find(key);
    if (function != functions.end())
      return enter(key, *function->second, depth);

    StringRef domain = normalDomain(node.domain());
    auto opset = opsets.find(domain);
    int64_t version = opset == opsets.end() ? 0 : opset->second;
    if (registry.find(domain, node.op_type(), version))
      return success();
    std::string shown = domain.empty() ? "" : printable(domain) + ".";
    shown += printable(node.op_type());
    std::string versions = registry.versions(domain, node.op_type());
    if (!versions.empty())
      shown += version == 0 ? " of a domain without opset_import"
                            : " at version " + std::to_string(version) + " (" +
                                  versions + " are supported)";
    Found &found = unsupported[shown];
    if (found.count++ == 0)
      found.first = printable(!node.name().empty() ? node.name()
                              : node.output_size() ? node.output(0)
                                                   : std::string());
    return success();
  }

  /// A function's body once, however often it is called.
  LogicalResult enter(const std::string &key,
                      const ::onnx::FunctionProto &function, int depth) {
    if (active.contains(key))
      return emitError() << "the function '" << printable(function.name())
                         << "' calls itself";
    if (!visited.insert(key).second)
      return success();
    active.insert(key);
    LogicalResult result =
        walk(function.node(), functionOpsets.find(key)->second, depth + 1);
    active.erase(key);
    return result;
  }

  const Registry &registry;
  const llvm::StringMap<llvm::StringMap<int64_t>> &functionOpsets;
  const llvm::StringMap<const ::onnx::FunctionProto *> &functions;
  EmitError emitError;
  llvm::StringSet<> active, visited;
  llvm::MapVector<std::string, Found, std::map<std::string, unsigned>>
      unsupported;
};

} // namespace

LogicalResult
checkSupported(const StrippedModel &model, const Registry &registry,
               const llvm::StringMap<int64_t> &opsets,
               const llvm::StringMap<llvm::StringMap<int64_t>> &functionOpsets,
               const llvm::StringMap<const ::onnx::FunctionProto *> &functions,
               EmitError emitError) {
  SupportCheck check(registry, functionOpsets, functions, emitError);
  if (failed(check.walk(model.model->graph().node(), opsets, 0)))
    return failure();
  return check.report();
}

} // namespace llm::importer
