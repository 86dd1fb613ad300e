//===- Order.h - Definitions before uses ------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_IMPORT_ONNX_ORDER_H
#define LLM_LIB_IMPORT_ONNX_ORDER_H

#include "onnx/onnx-ml.pb.h"

#include <vector>

namespace llm::importer {

using NodeList = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

/// The nodes in an order in which values are defined before they are used, by
/// subgraphs too: as given where that holds (ONNX asks for it), else the
/// nearest such order (ONNX Runtime takes any). Nodes on a cycle, and those
/// behind it, come last as given.
std::vector<const ::onnx::NodeProto *> inOrder(const NodeList &nodes);

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_ORDER_H
