//===- Attention.cpp - Attention and rotary embeddings
//----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

#include <cmath>

using namespace mlir;

namespace llm::importer {

/// The heads of a [batch, seq, heads * size] or [batch, heads, seq, size]
/// tensor; `declared` is what an attribute says, 0 for nothing.
static int64_t headsOf(Node &n, unsigned i, int64_t declared, StringRef attr) {
  ArrayRef<int64_t> dims = Node::shape(n.in(i));
  if (dims.size() == 3) {
    if (declared <= 0)
      n.error() << "the attribute '" << attr
                << "' is required and positive where the heads share an axis";
    return declared;
  }
  if (declared > 0 && !ShapedType::isDynamic(dims[1]) && dims[1] != declared)
    n.error() << "input " << i << " of type " << n.in(i).getType() << " has no "
              << declared << " heads, as '" << attr << "' says";
  if (declared <= 0 && ShapedType::isDynamic(dims[1]))
    n.error() << "the number of heads of input " << i
              << " is not known: " << n.in(i).getType();
  return declared > 0 ? declared : dims[1];
}

/// The size of a head of input `i`, or kDynamic.
static int64_t headSize(Node &n, unsigned i, int64_t heads) {
  ArrayRef<int64_t> dims = Node::shape(n.in(i));
  int64_t last = dims.back();
  if (dims.size() == 4 || ShapedType::isDynamic(last))
    return last;
  if (heads <= 0 || last % heads != 0) {
    n.error() << "input " << i << " of type " << n.in(i).getType()
              << " does not hold " << heads << " heads";
    return 1;
  }
  return last / heads;
}

/// 1 / sqrt(size) where no scale is given.
static double scaleOf(Node &n, double given, int64_t size) {
  if (given != 0.0)
    return given;
  if (ShapedType::isDynamic(size) || size <= 0) {
    n.error() << "the head size is not known, which the default scale needs";
    return 1.0;
  }
  return 1.0 / std::sqrt(static_cast<double>(size));
}

static int64_t sum(int64_t a, int64_t b) {
  int64_t total;
  if (ShapedType::isDynamic(a) || ShapedType::isDynamic(b) ||
      __builtin_add_overflow(a, b, &total))
    return ShapedType::kDynamic;
  return total;
}

/// ONNX Attention, versions 23 to 28.
static LogicalResult attention(Node &n) {
  bool causal = n.flag("is_causal");
  double softcap = n.floatAttr("softcap", 0.0);
  bool scaled = n.hasAttr("scale");
  double given = n.floatAttr("scale", 0.0);
  int64_t qAttr = n.intAttr("q_num_heads", 0);
  int64_t kvAttr = n.intAttr("kv_num_heads", 0);
  // The softmax is computed in f32, which is never less than asked for but for
  // doubles.
  if (n.intAttr("softmax_precision", 1) == ::onnx::TensorProto::DOUBLE)
    return n.error() << "a softmax_precision of double is not supported";
  n.intAttr("qk_matmul_output_mode", 0);
  int64_t left = n.version >= 25 ? n.intAttr("left_window_size", -1) : -1;
  int64_t right = n.version >= 25 ? n.intAttr("right_window_size", -1) : -1;
  if (n.version < 24 && n.has(6))
    return n.error() << "nonpad_kv_seqlen came with version 24";
  if (!n.isFloat(0) || !n.hasRank(0, 3, 4))
    return failure();
  int64_t rank = Node::type(n.in(0)).getRank();
  for (unsigned i : {1u, 2u})
    if (!n.sameElements(0, i) || !n.hasRank(i, rank, rank))
      return failure();
  for (unsigned i : {4u, 5u})
    if (n.has(i) && (!n.sameElements(0, i) || !n.hasRank(i, 4, 4)))
      return failure();
  if (n.has(4) != n.has(5))
    return n.error() << "past_key and past_value come together";
  if (n.has(6) && (!n.isInteger(6) || !n.hasRank(6, 1, 1)))
    return failure();
  if (n.has(3)) {
    Type element = Node::element(n.in(3));
    if (!element.isInteger(1) && element != Node::element(n.in(0)))
      return n.error() << "the mask is of bool or of the query's type, not "
                       << n.in(3).getType();
    if (!n.hasRank(3, 1, 4))
      return failure();
  }
  if (left < -1 || right < -1)
    return n.error() << "a window size is -1 or not negative";
  if ((left >= 0 && !causal) || (right >= 0 && !(causal || right == 0)))
    return n.error() << "windows are only supported for causal attention";
  if (right == 0)
    causal = true;

  int64_t heads = headsOf(n, 0, qAttr, "q_num_heads");
  int64_t kvHeads = headsOf(n, 1, kvAttr, "kv_num_heads");
  int64_t size = headSize(n, 0, heads), keySize = headSize(n, 1, kvHeads);
  int64_t valueSize = headSize(n, 2, kvHeads);
  if (n.hasFailed())
    return failure();
  double scale = scaled ? given : scaleOf(n, 0.0, size);
  if (n.hasFailed())
    return failure();

  Value query = n.in(0), key = n.in(1), value = n.in(2);
  Type element = Node::element(query);
  ArrayRef<int64_t> q = Node::shape(query), k = Node::shape(key);
  int64_t seqAxis = rank == 3 ? 1 : 2;
  Shape output(q);
  int64_t width = 0;
  if (rank == 4)
    output[3] = valueSize;
  else if (ShapedType::isDynamic(valueSize) ||
           __builtin_mul_overflow(heads, valueSize, &width))
    output[2] = ShapedType::kDynamic;
  else
    output[2] = width;
  int64_t total =
      n.has(4) ? sum(Node::shape(n.in(4))[2], k[seqAxis]) : k[seqAxis];
  SmallVector<Type> present;
  // The two come together in llm.attention, also where one is not used.
  if (n.wants(1) || n.wants(2)) {
    present = {n.makeType({k[0], kvHeads, total, keySize}, element),
               n.makeType({k[0], kvHeads, total, valueSize}, element)};
  }
  auto at = [&](unsigned i) { return n.has(i) ? n.in(i) : Value(); };
  auto op = ir::AttentionOp::create(
      n.builder, n.loc, n.makeType(output, element), present, query, key, value,
      at(4), at(5), at(3), at(6), n.i64(heads), n.i64(kvHeads), n.f64(scale),
      n.f64(softcap), n.i64(left >= 0 ? left + 1 : 0), n.unit(causal));
  n.set(0, op.getOutput());
  n.set(1, op.getPresentKey());
  n.set(2, op.getPresentValue());
  return success();
}

/// `x` rotated; the tables are inputs `cos` and `sin`, positions may be null.
static LogicalResult rope(Node &n, unsigned cos, unsigned sin,
                          Value positions) {
  int64_t rotary = n.intAttr("rotary_embedding_dim", 0);
  int64_t heads = n.intAttr("num_heads", 0);
  bool interleaved = n.flag("interleaved");
  if (!n.isFloat(0) || !n.hasRank(0, 3, 4) || !n.sameElements(0, cos) ||
      !n.sameElements(0, sin))
    return failure();
  int64_t tableRank = positions ? 2 : 3;
  if (!n.hasRank(cos, tableRank, tableRank) ||
      !n.hasRank(sin, tableRank, tableRank))
    return failure();
  Value x = n.in(0);
  ArrayRef<int64_t> dims = Node::shape(x);
  int64_t half = Node::shape(n.in(cos)).back();
  if (rotary < 0 || rotary % 2 != 0 ||
      (rotary > 0 && !ShapedType::isDynamic(half) && half != rotary / 2))
    return n.error() << "the attribute rotary_embedding_dim (" << rotary
                     << ") does not fit tables of type " << n.in(cos).getType();
  if (dims.size() == 3 && heads <= 0) {
    // A head is as wide as the tables turn, where they turn all of it.
    int64_t size;
    if (rotary != 0 || ShapedType::isDynamic(half) || half <= 0 ||
        ShapedType::isDynamic(dims[2]) ||
        __builtin_mul_overflow(half, 2, &size) || dims[2] % size != 0)
      return n.error() << "the attribute 'num_heads' is required";
    heads = dims[2] / size;
  }
  if (dims.size() == 3 && !ShapedType::isDynamic(dims[2]) &&
      dims[2] % heads != 0)
    return n.error() << "input 0 of type " << x.getType() << " does not hold "
                     << heads << " heads";
  int64_t size = dims.size() == 4 || ShapedType::isDynamic(dims.back())
                     ? dims.back()
                     : dims.back() / heads;
  if (!ShapedType::isDynamic(size) &&
      (rotary > size ||
       (rotary == 0 && !ShapedType::isDynamic(half) && half != size / 2)))
    return n.error() << "tables of type " << n.in(cos).getType()
                     << " do not fit heads of size " << size;
  n.set(0, n.make<ir::RopeOp>(x.getType(), x, n.in(cos), n.in(sin), positions,
                              n.i64(dims.size() == 3 ? heads : 0),
                              n.i64(rotary), n.unit(interleaved)));
  return success();
}

static LogicalResult rotaryEmbedding(Node &n) {
  if (n.has(3) && (!n.isInteger(3) || !n.hasRank(3, 2, 2)))
    return failure();
  return rope(n, 1, 2, n.has(3) ? n.in(3) : Value());
}

/// The operator of ONNX Runtime has another order of inputs.
static LogicalResult microsoftRotaryEmbedding(Node &n) {
  if (n.floatAttr("scale", 1.0) != 1.0)
    return n.error() << "a scale other than 1 is not supported";
  if (n.flag("is_packed_batching"))
    return n.error() << "packed batching is not supported";
  if (!n.isInteger(1) || !n.hasRank(1, 1, 2))
    return failure();
  Value positions = n.in(1);
  if (Node::type(positions).getRank() == 1) {
    // One number is the position of the first token.
    if (Node::shape(positions)[0] != 1)
      return n.error() << "positions are [1] or [batch, seq], not "
                       << positions.getType();
    return n.error() << "positions given as one offset are not supported";
  }
  return rope(n, 2, 3, positions);
}

/// com.microsoft GroupQueryAttention.
static LogicalResult groupQueryAttention(Node &n) {
  int64_t heads = n.requiredInt("num_heads");
  int64_t kvHeads = n.requiredInt("kv_num_heads");
  double given = n.floatAttr("scale", 0.0);
  double softcap = n.floatAttr("softcap", 0.0);
  int64_t window = n.intAttr("local_window_size", -1);
  bool rotates = n.flag("do_rotary");
  bool interleaved = n.flag("rotary_interleaved");
  bool smooth = n.intAttr("smooth_softmax", 0) > 0;
  if (n.intAttr("qk_output", 0) != 0)
    return n.error() << "qk_output is not supported";
  for (StringRef attr : {"k_quant_type", "v_quant_type"})
    if (n.stringAttr(attr, "NONE") != "NONE")
      return n.error() << "a quantized cache is not supported";
  n.intAttr("kv_cache_bit_width", 0);
  if (n.hasFailed())
    return failure();
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0)
    return n.error() << "num_heads (" << heads
                     << ") must be a positive multiple of kv_num_heads ("
                     << kvHeads << ")";
  for (unsigned i = 12; i < n.numInputs(); ++i)
    if (n.has(i))
      return n.error() << "input " << i << " is not supported";
  if (!n.isFloat(0) || !n.hasRank(0, 3, 3))
    return failure();
  for (unsigned i : {1u, 2u})
    if (n.has(i) && (!n.sameElements(0, i) || !n.hasRank(i, 3, 3)))
      return failure();
  for (unsigned i : {3u, 4u})
    if (n.has(i) && (!n.sameElements(0, i) || !n.hasRank(i, 4, 4)))
      return failure();
  if (n.has(1) != n.has(2) || n.has(3) != n.has(4) || n.has(7) != n.has(8))
    return n.error() << "key and value, past_key and past_value, cos_cache and "
                        "sin_cache come together";
  if (!n.has(5) || !n.has(6))
    return n.error() << "seqlens_k and total_sequence_length are required";
  if (!n.isInteger(5) || !n.isInteger(6))
    return failure();
  if (rotates && !n.has(7))
    return n.error() << "do_rotary needs cos_cache and sin_cache";
  for (unsigned i : {7u, 8u})
    if (n.has(i) && (!n.isFloat(i) || !n.hasRank(i, 2, 2)))
      return failure();

  Value query = n.in(0), key = n.has(1) ? n.in(1) : Value(),
        value = n.has(2) ? n.in(2) : Value();
  ArrayRef<int64_t> dims = Node::shape(query);
  Type element = Node::element(query);
  int64_t size;
  if (!key) {
    int64_t all;
    if (ShapedType::isDynamic(dims[2]) ||
        __builtin_add_overflow(heads, 2 * kvHeads, &all) || all <= 0 ||
        dims[2] % all != 0)
      return n.error() << "a packed query of type " << query.getType()
                       << " does not hold " << heads << " + 2 * " << kvHeads
                       << " heads";
    size = dims[2] / all;
    SmallVector<Type> types;
    SmallVector<int64_t> widths = {heads * size, kvHeads * size,
                                   kvHeads * size};
    for (int64_t width : widths)
      types.push_back(n.makeType({dims[0], dims[1], width}, element));
    auto split =
        n.create<ir::SplitOp>(types, query, n.constantInts(widths), n.i64(2));
    query = split.getResult(0);
    key = split.getResult(1);
    value = split.getResult(2);
    dims = Node::shape(query);
  } else {
    size = headSize(n, 0, heads);
    headSize(n, 1, kvHeads);
    headSize(n, 2, kvHeads);
    if (n.hasFailed())
      return failure();
  }
  double scale = scaleOf(n, given, size);
  if (n.hasFailed())
    return failure();
  SmallVector<Type> present;
  if (n.wants(1) || n.wants(2)) {
    // The cache may be a buffer of its largest size: only the other sizes are
    // known here.
    present.assign(
        2, n.makeType({dims[0], kvHeads, ShapedType::kDynamic, size}, element));
  }
  auto at = [&](unsigned i, bool wanted = true) {
    return wanted && n.has(i) ? n.in(i) : Value();
  };
  auto op = ir::GroupQueryAttentionOp::create(
      n.builder, n.loc, query.getType(), present, query, key, value, at(3),
      at(4), n.in(5), n.in(6), at(7, rotates), at(8, rotates), at(9, rotates),
      at(10), at(11), n.i64(heads), n.i64(kvHeads), n.f64(scale),
      n.f64(softcap), n.i64(window > 0 ? window : 0),
      n.unit(interleaved && rotates), n.unit(smooth));
  n.set(0, op.getOutput());
  n.set(1, op.getPresentKey());
  n.set(2, op.getPresentValue());
  return success();
}

void registerAttention(Registry &r) {
  r.add("Attention", {attention, 3, 7, 4, 23});
  r.add("RotaryEmbedding", {rotaryEmbedding, 3, 4, 1, 23});
  r.add(kMicrosoft, "GroupQueryAttention", {groupQueryAttention, 1, 16, 4});
  r.add(kMicrosoft, "RotaryEmbedding", {microsoftRotaryEmbedding, 4, 4});
}

} // namespace llm::importer
