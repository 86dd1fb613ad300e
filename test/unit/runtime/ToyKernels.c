//===- ToyKernels.c - Kernels of the tests' model ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A code object as the compiler would write it: no undefined symbol, one
// exported table. The "model" hashes the (token, position, role) triples that
// attention sees, so that any wrong slot, page, length or order shows in the
// logits. ToyModel.cpp states the same function independently, over plain
// vectors.
//
//===----------------------------------------------------------------------===//
#include "llm/ABI/kernel.h"

typedef uint32_t u32;

/// reads token, position, role, slot, seq [T]; writes plane [C, 3].
static void append(void *const *b, const int64_t *sizes, int64_t begin,
                   int64_t end) {
  const int32_t *token = b[0], *position = b[1], *role = b[2], *slot = b[3];
  const int32_t *seq = b[4];
  int32_t *plane = b[5];
  (void)sizes;
  for (int64_t t = begin; t < end; ++t) {
    if (seq[t] < 0)
      continue;
    plane[3 * (int64_t)slot[t]] = token[t];
    plane[3 * (int64_t)slot[t] + 1] = position[t];
    plane[3 * (int64_t)slot[t] + 2] = role[t];
  }
}

/// reads plane, seq [T], q_begin [S+1], kv_len [S], block_table [S, B]; writes
/// hash u32[T]. sizes: T, B, page size (0: contiguous).
static void attend(void *const *b, const int64_t *sizes, int64_t begin,
                   int64_t end) {
  const int32_t *plane = b[0], *seq = b[1], *q_begin = b[2], *kv_len = b[3];
  const int32_t *table = b[4];
  u32 *hash = b[5];
  int64_t width = sizes[1], page = sizes[2];
  for (int64_t t = begin; t < end; ++t) {
    int32_t s = seq[t];
    u32 h = 17;
    if (s >= 0) {
      int64_t n = kv_len[s] - (q_begin[s + 1] - 1 - t);
      for (int64_t j = 0; j < n; ++j) {
        int64_t slot = page ? table[s * width + j / page] * page + j % page
                            : table[s * width] + j;
        for (int64_t i = 0; i < 3; ++i)
          h = (h ^ (u32)plane[3 * slot + i]) * 16777619u;
      }
    }
    hash[t] = h;
  }
}

/// reads hash u32[T], row [R]; writes picked u32[R].
static void gather(void *const *b, const int64_t *sizes, int64_t begin,
                   int64_t end) {
  const u32 *hash = b[0];
  const int32_t *row = b[1];
  u32 *picked = b[2];
  (void)sizes;
  for (int64_t r = begin; r < end; ++r)
    picked[r] = hash[row[r]];
}

/// reads picked u32[R], bias f32[V]; writes logits f32[R, V]. sizes: R, V. The
/// grid is V.
static void logits(void *const *b, const int64_t *sizes, int64_t begin,
                   int64_t end) {
  const u32 *picked = b[0];
  const float *bias = b[1];
  float *out = b[2];
  for (int64_t r = 0; r < sizes[0]; ++r)
    for (int64_t v = begin; v < end; ++v) {
      u32 h = (picked[r] + (u32)v * 2654435761u) * 2246822519u;
      out[r * sizes[1] + v] = (float)(h >> 20) * (1.0f / 512) + bias[v];
    }
}

/// y = x * factor over f32, factor f32[1] the first constant. Refuses negative
/// values, to test failing. A host function.
static int32_t scale(const struct llm_host *host,
                     const struct llm_tensor *inputs,
                     struct llm_tensor *outputs, const void *const *constants) {
  const struct llm_tensor *x = &inputs[0];
  float factor = *(const float *)constants[0];
  int64_t count = 1;
  for (int64_t i = 0; i < x->rank; ++i)
    count *= x->dims[i];
  outputs[0].rank = x->rank;
  outputs[0].element_type = x->element_type;
  outputs[0].dims = host->allocate(host->context, x->rank * 8);
  outputs[0].data = host->allocate(host->context, count * 4);
  if ((x->rank && !outputs[0].dims) || (count && !outputs[0].data)) {
    host->fail(host->context, "out of memory");
    return 1;
  }
  for (int64_t i = 0; i < x->rank; ++i)
    outputs[0].dims[i] = x->dims[i];
  for (int64_t i = 0; i < count; ++i) {
    float value = ((const float *)x->data)[i];
    if (value < 0) {
      host->fail(host->context, "a value is negative");
      return 1;
    }
    ((float *)outputs[0].data)[i] = value * factor;
  }
  return 0;
}

static const struct llm_kernel_entry entries[] = {
    {"append", (void *)append}, {"attend", (void *)attend},
    {"gather", (void *)gather}, {"logits", (void *)logits},
    {"scale", (void *)scale},
};

__attribute__((visibility("default")))
const struct llm_kernel_table llm_kernel_table = {LLM_KERNEL_ABI_VERSION, 5,
                                                  entries};
