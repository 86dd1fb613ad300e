//===- AttentionSteps.cpp - Steps over a paged cache for tests ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/AttentionSteps.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace llm::test {

static constexpr float kScale = 0.3f;

std::ostream &operator<<(std::ostream &os, const AttentionShape &shape) {
  return os << shape.heads << "/" << shape.kvHeads << " heads of " << shape.size
            << " and " << shape.valueSize << ", window " << shape.window
            << ", softcap " << shape.softcap << ", " << shape.cacheType
            << ", tiles of " << shape.tile << (shape.rows ? ", rows" : "");
}

static int elementBytes(const std::string &type) {
  return type == "f32" ? 4 : type == "f16" || type == "bf16" ? 2 : 1;
}

size_t PlaneIndex::key(int slot, int head, int d) const {
  size_t row = static_cast<size_t>(slot) * heads + head;
  if (!blocks)
    return row * size + d;
  size_t block = static_cast<size_t>(slot / 16) * heads + head;
  return ((block * (size / unit) + d / unit) * 16 + slot % 16) * unit +
         d % unit;
}

size_t PlaneIndex::value(int slot, int head, int d) const {
  size_t row = static_cast<size_t>(slot) * heads + head;
  if (!blocks)
    return row * size + d;
  size_t block = static_cast<size_t>(slot / 16) * heads + head;
  return ((block * (16 / unit) + slot % 16 / unit) * size + d) * unit +
         slot % unit;
}

size_t PlaneIndex::scale(int slot, int head) const {
  if (!blocks)
    return static_cast<size_t>(slot) * heads + head;
  return (static_cast<size_t>(slot / 16) * heads + head) * 16 + slot % 16;
}

float storeHead(const std::string &type, const float *values, int count,
                uint8_t *to) {
  float scale = 1;
  if (elementBytes(type) == 1) {
    float top = 0;
    for (int d = 0; d < count; ++d)
      top = std::isnan(values[d]) || std::isnan(top)
                ? NAN
                : std::max(top, std::abs(values[d]));
    scale = top / (type == "i8"       ? 127.0f
                   : type == "f8E5M2" ? 57344.0f
                                      : 448.0f);
    // Below this a division is not what the kernels promise.
    if (scale < 0x1p-100f)
      scale = 1;
  }
  for (int d = 0; d < count; ++d) {
    float value = values[d];
    if (type == "f32") {
      std::memcpy(to + d * 4, &value, 4);
    } else if (type == "f16") {
      auto half = static_cast<_Float16>(value);
      std::memcpy(to + d * 2, &half, 2);
    } else if (type == "bf16") {
      BFloat16 half(value);
      std::memcpy(to + d * 2, &half, 2);
    } else if (type == "i8") {
      float code = std::nearbyint(value / scale);
      to[d] = static_cast<uint8_t>(
          static_cast<int8_t>(std::isnan(code) ? -127 : code));
    } else {
      to[d] = roundToF8(type, value / scale);
    }
  }
  return scale;
}

std::vector<double> readHead(const std::string &type, const float *values,
                             int count) {
  std::vector<uint8_t> bytes(count * 4);
  double scale = storeHead(type, values, count, bytes.data());
  std::vector<double> result(count);
  for (int d = 0; d < count; ++d) {
    if (type == "f32") {
      result[d] = values[d];
    } else if (type == "f16") {
      result[d] = static_cast<_Float16>(values[d]);
    } else if (type == "bf16") {
      result[d] = BFloat16(values[d]);
    } else if (type == "i8") {
      result[d] = static_cast<int8_t>(bytes[d]) * scale;
    } else {
      result[d] = fromF8(type, bytes[d]) * scale;
    }
  }
  return result;
}

Sequence makeSequence(const AttentionShape &shape, int length, int fresh,
                      unsigned seed, float keyScale, float valueScale) {
  auto keys = randomFloats(
      static_cast<size_t>(length) * shape.kvHeads * shape.size, seed, keyScale);
  auto values = randomFloats(static_cast<size_t>(length) * shape.kvHeads *
                                 shape.valueSize,
                             seed + 1, valueScale);
  return {length,
          fresh,
          {keys.begin(), keys.end()},
          {values.begin(), values.end()}};
}

Sequence firstSlots(const AttentionShape &shape, const Sequence &whole,
                    int length, int fresh) {
  auto part = [&](const std::vector<float> &rows, int size) {
    return std::vector<float>(rows.begin(),
                              rows.begin() + length * shape.kvHeads * size);
  };
  return {length, fresh, part(whole.keys, shape.size),
          part(whole.values, shape.valueSize)};
}

Step::Step(const AttentionShape &shape, const std::vector<Sequence> &sequences,
           int pageSize, unsigned seed)
    : shape(shape), pageSize(pageSize), keys(0), values(0), keyScales(0),
      valueScales(0) {
  int pages = 0, longest = 0, slots = 0;
  for (const Sequence &s : sequences) {
    longest = std::max(longest, s.length);
    pages += pageSize ? (s.length + pageSize - 1) / pageSize : 0;
    slots += s.length;
  }
  width = pageSize ? (longest + pageSize - 1) / pageSize : 1;
  std::vector<int32_t> order(pages + 1);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  if (pageSize)
    slots = (pages + 1) * pageSize;
  int bytes = elementBytes(shape.cacheType);
  int keyWidth = shape.kvHeads * shape.size,
      valueWidth = shape.kvHeads * shape.valueSize;
  keys = Buffer<uint8_t>(static_cast<size_t>(slots) * keyWidth * bytes, 0xff);
  values =
      Buffer<uint8_t>(static_cast<size_t>(slots) * valueWidth * bytes, 0xff);
  // Codes of 8 bits have no scale but this where nobody stored any.
  keyScales = Buffer<float>(static_cast<size_t>(slots) * shape.kvHeads, NAN);
  valueScales = keyScales;
  table.assign(sequences.size() * width, -1);
  begin.push_back(0);
  int nextPage = 0, nextSlot = 0;
  bool blocks = shape.inBlocks(pageSize);
  PlaneIndex keyAt(shape.cacheType, shape.kvHeads, shape.size, blocks),
      valueAt(shape.cacheType, shape.kvHeads, shape.valueSize, blocks);
  std::vector<uint8_t> stored(4 * std::max(shape.size, shape.valueSize));
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence &s = sequences[i];
    for (int j = 0; j < s.length; ++j) {
      int slot;
      if (pageSize) {
        int32_t &page = table[i * width + j / pageSize];
        if (page < 0)
          page = order[nextPage++];
        slot = page * pageSize + j % pageSize;
      } else {
        table[i * width] = nextSlot;
        slot = nextSlot + j;
      }
      for (int h = 0; h < shape.kvHeads; ++h) {
        int from = j * shape.kvHeads + h;
        keyScales[keyAt.scale(slot, h)] =
            storeHead(shape.cacheType, &s.keys[from * shape.size], shape.size,
                      stored.data());
        for (int d = 0; d < shape.size; ++d)
          std::memcpy(&keys[keyAt.key(slot, h, d) * bytes], &stored[d * bytes],
                      bytes);
        valueScales[valueAt.scale(slot, h)] =
            storeHead(shape.cacheType, &s.values[from * shape.valueSize],
                      shape.valueSize, stored.data());
        for (int d = 0; d < shape.valueSize; ++d)
          std::memcpy(&values[valueAt.value(slot, h, d) * bytes],
                      &stored[d * bytes], bytes);
      }
    }
    nextSlot += s.length;
    length.push_back(s.length);
    seq.insert(seq.end(), s.fresh, static_cast<int32_t>(i));
    tokens += s.fresh;
    begin.push_back(tokens);
  }
}

static std::string params(const AttentionShape &shape, int pageSize) {
  auto integer = [](const char *name, int value) {
    return std::string(name) + " = " + std::to_string(value) + " : i64, ";
  };
  return "{" + integer("heads", shape.heads) +
         integer("kv_heads", shape.kvHeads) + integer("size", shape.size) +
         integer("value_size", shape.valueSize) + integer("tile", shape.tile) +
         integer("head_groups", shape.headGroups) +
         integer("split", shape.split) + integer("window", shape.window) +
         integer("page_size", pageSize) +
         "scale = 0.3 : f64, softcap = " + std::to_string(shape.softcap) +
         " : f64, cache_type = " + shape.cacheType +
         (shape.inBlocks(pageSize) ? ", planes = \"blocks\"}" : "}");
}

Attention::Attention(const AttentionShape &shape, int pageSize,
                     const std::string &cpu)
    : shape(shape), pairs((std::string(shape.cacheType) == "bf16" ||
                           elementBytes(shape.cacheType) == 1) &&
                          hasFeature(cpu, "avx512bf16")),
      kernel("attention", params(shape, pageSize), cpu),
      merge("attention_merge", params(shape, pageSize), cpu) {}

template <typename T> static Buffer<T> bufferOf(const std::vector<T> &values) {
  Buffer<T> result(values.size());
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

Buffer<float> Attention::run(const Step &step, const Buffer<float> &q,
                             bool split) const {
  Buffer<float> out(static_cast<size_t>(step.tokens) * shape.outWidth(), NAN);
  Buffer<int32_t> seq = bufferOf(step.seq), begin = bufferOf(step.begin),
                  length = bufferOf(step.length), table = bufferOf(step.table);
  // One more span than the longest needs, as a block table may have more pages.
  int64_t longest = *std::max_element(step.length.begin(), step.length.end());
  int64_t spans = longest / 256 + 2, few = std::min(step.tokens, shape.split);
  Buffer<float> partials(few * shape.heads * spans * (shape.valueSize + 2),
                         NAN);
  int64_t sequences = static_cast<int64_t>(step.length.size());
  int64_t items =
      std::max((step.tokens + shape.tile - 1) / shape.tile, shape.minTiles) *
      int64_t(shape.kvHeads);
  std::vector<const void *> buffers{
      q.data(),     step.keys.data(), step.values.data(), seq.data(),
      begin.data(), length.data(),    table.data()};
  if (elementBytes(shape.cacheType) == 1) {
    buffers.push_back(step.keyScales.data());
    buffers.push_back(step.valueScales.data());
  }
  buffers.push_back(out.data());
  buffers.push_back(partials.data());
  std::vector<const void *> mergeBuffers{
      partials.data(), seq.data(), begin.data(), length.data(), out.data()};
  auto call = [&](const CompiledKernel &compiled,
                  const std::vector<const void *> &operands,
                  const std::vector<int64_t> &sizes, int64_t count) {
    if (!split)
      compiled.call(step.tokens, operands, sizes, 0, count);
    else
      for (int64_t i = count - 1; i >= 0; --i)
        compiled.call(step.tokens, operands, sizes, i, i + 1);
  };
  call(kernel, buffers, {step.tokens, step.width, sequences, items, spans},
       items);
  call(merge, mergeBuffers, {step.tokens, spans}, few * shape.kvHeads);
  EXPECT_TRUE(out.intact());
  EXPECT_TRUE(partials.intact());
  return out;
}

Reference reference(const AttentionShape &shape, const Sequence &s, int count,
                    const float *q, bool roundsToBF16) {
  Reference result;
  result.out.assign(shape.outWidth(), 0.0);
  result.spread.assign(shape.outWidth(), 0.0);
  int group = shape.heads / shape.kvHeads;
  int low = shape.window ? std::max(0, count - shape.window) : 0;
  constexpr double kLog2E = 1.4426950408889634;
  double fold = shape.softcap > 0 ? double(kScale) / shape.softcap
                                  : double(kScale) * kLog2E;
  for (int h = 0; h < shape.heads; ++h) {
    int kv = h / group;
    std::vector<double> query(shape.size), score(count);
    for (int d = 0; d < shape.size; ++d) {
      float x = q[h * shape.size + d];
      query[d] = roundsToBF16 ? double(BFloat16(x * static_cast<float>(fold)))
                              : x * fold;
    }
    double top = -INFINITY, sum = 0;
    for (int j = low; j < count; ++j) {
      double dot = 0;
      std::vector<double> key =
          readHead(shape.cacheType,
                   &s.keys[(j * shape.kvHeads + kv) * shape.size], shape.size);
      for (int d = 0; d < shape.size; ++d)
        dot += query[d] * key[d];
      if (shape.softcap > 0)
        dot = shape.softcap * kLog2E * std::tanh(dot);
      score[j] = dot;
      top = std::max(top, dot);
      result.top = std::max(result.top, std::abs(dot));
    }
    for (int j = low; j < count; ++j)
      sum += std::exp2(score[j] - top);
    for (int j = low; j < count; ++j) {
      std::vector<double> value =
          readHead(shape.cacheType,
                   &s.values[(j * shape.kvHeads + kv) * shape.valueSize],
                   shape.valueSize);
      for (int d = 0; d < shape.valueSize; ++d) {
        double part = std::exp2(score[j] - top) / sum * value[d];
        result.out[h * shape.valueSize + d] += part;
        result.spread[h * shape.valueSize + d] += std::abs(part);
      }
    }
  }
  return result;
}

void expectReference(const Attention &attention, const Step &step,
                     const std::vector<Sequence> &sequences,
                     const Buffer<float> &q, const Buffer<float> &out) {
  const AttentionShape &shape = step.shape;
  int width = shape.outWidth();
  for (int t = 0; t < step.tokens; ++t) {
    if (step.seq[t] < 0)
      continue;
    const Sequence &s = sequences[step.seq[t]];
    int count = s.length - (step.begin[step.seq[t] + 1] - 1 - t);
    Reference want = reference(shape, s, count, &q[t * shape.queryWidth()],
                               attention.roundsToBF16());
    // f32: rounding of scores, of the exponential and of sums. bf16: half an
    // ulp of a weight and the shorter polynomial; below 2^-126 it has zeros.
    double relative = 2e-6 + 6e-7 * want.top;
    if (attention.roundsToBF16())
      relative += 0x1p-8 + 2.5e-4;
    for (int d = 0; d < width; ++d)
      ASSERT_NEAR(out[t * width + d], want.out[d],
                  relative * want.spread[d] + 0x1p-125)
          << shape << ": token " << t << " element " << d << " page size "
          << step.pageSize;
  }
}

} // namespace llm::test
