//===- KVDialect.cpp - The kv dialect ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/KV/IR/KVDialect.h"
#include "dialects/KV/IR/Planes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kv;

#include "dialects/KV/IR/KVDialect.cpp.inc"
#include "dialects/KV/IR/KVEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/KV/IR/KVAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/KV/IR/KVTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/KV/IR/KVOps.cpp.inc"

void KVDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/KV/IR/KVAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/KV/IR/KVTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/KV/IR/KVOps.cpp.inc"
      >();
}

LogicalResult PlaneAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef name, Type elementType,
                                ArrayRef<int64_t> shape, Granularity) {
  if (!elementType.isIntOrFloat())
    return emitError() << "plane '" << name << "' holds ints or floats, not "
                       << elementType;
  if (shape.empty() || llvm::any_of(shape, [](int64_t d) { return d <= 0; }))
    return emitError() << "plane '" << name << "' needs positive dimensions";
  // The bits of one row are counted in 64 bits.
  int64_t bits = elementType.getIntOrFloatBitWidth();
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(bits, dim, &bits))
      return emitError() << "plane '" << name << "' is too large";
  return success();
}

LogicalResult GroupAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t layers, int64_t kvHeads,
                                ArrayRef<PlaneAttr> planes, int64_t pageSize,
                                bool, int64_t window) {
  if (layers <= 0 || kvHeads <= 0)
    return emitError() << "layers and kv_heads must be positive";
  if (planes.empty())
    return emitError() << "a group needs a plane";
  if (pageSize < 0 || window < 0)
    return emitError() << "page_size and window must not be negative";
  for (size_t i = 0; i < planes.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (planes[i].getName() == planes[j].getName())
        return emitError() << "two planes are named '" << planes[i].getName()
                           << "'";
  return success();
}

static constexpr llvm::StringLiteral kScaleSuffix = "_scale";

std::optional<unsigned> kv::findTokenPlane(GroupAttr group, StringRef name) {
  for (auto [i, plane] : llvm::enumerate(group.getPlanes()))
    if (plane.getName() == name && plane.getGranularity() == Granularity::token)
      return i;
  return std::nullopt;
}

std::optional<unsigned> kv::scaleOfPlane(GroupAttr group, unsigned index) {
  PlaneAttr plane = group.getPlanes()[index];
  if (plane.getGranularity() != Granularity::token)
    return std::nullopt;
  return findTokenPlane(group, (plane.getName() + kScaleSuffix).str());
}

bool kv::isScalePlane(GroupAttr group, unsigned index) {
  PlaneAttr plane = group.getPlanes()[index];
  StringRef name = plane.getName();
  return plane.getGranularity() == Granularity::token &&
         name.consume_back(kScaleSuffix) && findTokenPlane(group, name);
}

/// The group that an op names, or null after an error.
template <typename OpTy> static GroupAttr groupOf(OpTy op) {
  ArrayRef<GroupAttr> groups = op.getCache().getType().getGroups();
  if (op.getGroup() >= groups.size()) {
    op.emitOpError("group ")
        << op.getGroup() << " is not among the cache's " << groups.size();
    return {};
  }
  GroupAttr group = groups[op.getGroup()];
  if (op.getLayer() >= static_cast<uint64_t>(group.getLayers())) {
    op.emitOpError("layer ")
        << op.getLayer() << " is not among the group's " << group.getLayers();
    return {};
  }
  return group;
}

LogicalResult AppendOp::verify() {
  GroupAttr group = groupOf(*this);
  if (!group)
    return failure();
  SmallVector<PlaneAttr> planes;
  for (auto [i, plane] : llvm::enumerate(group.getPlanes()))
    if (plane.getGranularity() == Granularity::token && !isScalePlane(group, i))
      planes.push_back(plane);
  if (planes.size() != getRows().size())
    return emitOpError("the group has ")
           << planes.size() << " token planes, got " << getRows().size()
           << " operands";
  for (auto [plane, rows] : llvm::zip(planes, getRows())) {
    int64_t width = 1;
    for (int64_t dim : plane.getShape())
      width *= dim;
    auto type = cast<RankedTensorType>(rows.getType());
    if (type.getRank() != 2 || type.getDimSize(1) != width)
      return emitOpError("plane '") << plane.getName() << "' takes rows of "
                                    << width << " elements, got " << type;
    auto first = cast<RankedTensorType>(getRows().front().getType());
    if (!type.isDynamicDim(0) && !first.isDynamicDim(0) &&
        type.getDimSize(0) != first.getDimSize(0))
      return emitOpError("operands have rows for ")
             << first.getDimSize(0) << " and " << type.getDimSize(0)
             << " tokens";
  }
  return success();
}

LogicalResult AttendOp::verify() {
  GroupAttr group = groupOf(*this);
  if (!group)
    return failure();
  int64_t heads = getNumHeads();
  if (heads <= 0 || heads % group.getKvHeads() != 0)
    return emitOpError("num_heads (")
           << heads << ") must be a positive multiple of kv_heads ("
           << group.getKvHeads() << ")";
  auto holdsHeads = [&](RankedTensorType type) {
    return type.getRank() == 2 && !type.isDynamicDim(1) &&
           type.getDimSize(1) % heads == 0;
  };
  auto query = cast<RankedTensorType>(getQuery().getType());
  if (!holdsHeads(query))
    return emitOpError("the query is [tokens, num_heads * size], not ")
           << query;
  auto output = cast<RankedTensorType>(getOutput().getType());
  if (!holdsHeads(output) ||
      (!query.isDynamicDim(0) && !output.isDynamicDim(0) &&
       query.getDimSize(0) != output.getDimSize(0)))
    return emitOpError("the output is [tokens, num_heads * value size], not ")
           << output;
  if (getSink()) {
    auto sink = cast<RankedTensorType>(getSink().getType());
    if (sink.getRank() != 1 || sink.getDimSize(0) != heads)
      return emitOpError("the sink has a logit for each of ")
             << heads << " heads, it is " << sink;
  }
  if (getMass() && cast<RankedTensorType>(getMass().getType()).getRank() != 2)
    return emitOpError("the mass is [tokens, slots], not ")
           << getMass().getType();
  return success();
}

LogicalResult ForkOp::verify() {
  if (cast<RankedTensorType>(getParent().getType()).getRank() != 1)
    return emitOpError("parent and child are vectors, not ")
           << getParent().getType();
  return success();
}

LogicalResult RollbackOp::verify() {
  if (cast<RankedTensorType>(getLength().getType()).getRank() != 1)
    return emitOpError("length is a vector, not ") << getLength().getType();
  return success();
}

LogicalResult ReadStepOp::verify() {
  bool known =
      llvm::StringSwitch<bool>(getField())
          .Cases({"token", "position", "seq", "role"}, true)
          .Cases({"logit_row", "q_begin", "state_slot", "adapter"}, true)
          .Default(false);
  if (!known)
    return emitOpError("the step has no array '") << getField() << "'";
  if (cast<RankedTensorType>(getType()).getRank() != 1)
    return emitOpError("a step array is a vector");
  return success();
}

/// Rows beside the step have a name and a width.
static LogicalResult verifyRows(Operation *op, Value rows, StringRef name) {
  auto type = cast<RankedTensorType>(rows.getType());
  if (type.getRank() != 2 || type.isDynamicDim(1) || type.getDimSize(1) == 0)
    return op->emitOpError("takes rows of known width, not ") << type;
  if (name.empty())
    return op->emitOpError("has an empty name");
  return success();
}

LogicalResult ObserveOp::verify() {
  return verifyRows(*this, getRows(), getName());
}

LogicalResult SupplyOp::verify() {
  return verifyRows(*this, getResult(), getName());
}

//===----------------------------------------------------------------------===//
// Linear use
//===----------------------------------------------------------------------===//

static LogicalResult verifyLinearValue(Value cache) {
  Operation *consumer = nullptr;
  for (Operation *user : cache.getUsers()) {
    if (isa<AttendOp>(user))
      continue;
    if (consumer) {
      // Uses come in no order: the later one is to blame.
      if (user->getBlock() == consumer->getBlock() &&
          user->isBeforeInBlock(consumer))
        std::swap(user, consumer);
      InFlightDiagnostic diag =
          user->emitOpError("consumes a cache value that is consumed already; "
                            "only kv.fork shares a cache");
      diag.attachNote(consumer->getLoc()) << "the other consumer";
      return diag;
    }
    consumer = user;
  }
  if (!consumer)
    return success();
  for (Operation *user : cache.getUsers()) {
    if (user == consumer || user->getBlock() != consumer->getBlock() ||
        user->isBeforeInBlock(consumer))
      continue;
    InFlightDiagnostic diag =
        user->emitOpError("reads a cache value after it was consumed");
    diag.attachNote(consumer->getLoc()) << "consumed here";
    return diag;
  }
  return success();
}

LogicalResult mlir::kv::verifyLinearUse(Operation *root) {
  auto check = [](ValueRange values) {
    return llvm::all_of(values, [](Value value) {
      return !isa<CacheType>(value.getType()) ||
             succeeded(verifyLinearValue(value));
    });
  };
  WalkResult result = root->walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (!check(block.getArguments()))
          return WalkResult::interrupt();
    return check(op->getResults()) ? WalkResult::advance()
                                   : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
