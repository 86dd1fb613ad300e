//===- step.h - What one run of a decoder program reads ---------*- C -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The step struct: int32 arrays, the same for prefill, chunked prefill, decode
// and verification. A decoder program binds them by name as `io` buffers; the
// names below are the ones that the manifest uses; an array with a [group]
// dimension is one buffer per cache group, `slot.0`, `kv_len.1`, ...
//
//   symbol  meaning
//   T       tokens in this step, over all sequences
//   S       sequences in this step
//   R       rows of logits that are wanted
//   P       tokens of prompt role; they come first (0 <= P <= T)
//   B       row length of the block tables: pages a sequence can own
//   C       slots of the cache (pages x page size)
//
// `seq` -1 marks a padding token: its key and value are never stored and
// nothing reads its row.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_ABI_STEP_H
#define LLM_ABI_STEP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Raised when a field is added, removed or reinterpreted. An artifact records
/// the version it was compiled for, the runtime refuses another one.
#define LLM_STEP_ABI_VERSION 1

/// The role of a token, fixed when it enters a request.
enum llm_role { LLM_ROLE_PROMPT = 0, LLM_ROLE_GENERATED = 1 };

/// One step. Arrays with a leading [group] dimension are group-major. All
/// pointers stay valid until the step has ended.
struct llm_step {
  int64_t num_tokens;         ///< T
  int64_t num_sequences;      ///< S
  int64_t num_logit_rows;     ///< R
  int64_t num_prompt_tokens;  ///< P
  int64_t num_groups;         ///< cache groups
  int64_t block_table_width;  ///< B
  const int32_t *token;       ///< [T] vocabulary ids
  const int32_t *position;    ///< [T] rotary positions
  const int32_t *seq;         ///< [T] index into the sequences, -1 = padding
  const int32_t *role;        ///< [T] llm_role
  const int32_t *slot;        ///< [group][T] cache slot that the token writes
  const int32_t *q_begin;     ///< [S+1] first token of each sequence
  const int32_t *kv_len;      ///< [group][S] slots after this step's appends
  const int32_t *state_slot;  ///< [S] slot of the sequence planes
  const int32_t *adapter;     ///< [S] adapter index, -1 = none
  const int32_t *logit_row;   ///< [R] tokens whose logits are wanted
  const int32_t *block_table; ///< [group][S][B] physical pages
  const int32_t *ancestor;    ///< [T][depth] or null: rows of this step on a
                              ///< token's path, in path order (trees)
  int64_t ancestor_depth;
};

/// A program that writes the io buffer "logits_maxima" [R][ceil(V / this)]
/// leaves there the largest finite logit of each block of so many, -infinity
/// where a block has none.
#define LLM_LOGITS_BLOCK 32

/// What sampling reads for one row of logits. Random draws are keyed by
/// (seed, position, stream), so that they do not depend on the batch.
struct llm_sampling {
  uint64_t seed;
  float temperature;        ///< 0 = greedy
  int32_t top_k;            ///< 0 = off
  float top_p;              ///< 1 = off
  float min_p;              ///< 0 = off
  float repetition_penalty; ///< 1 = off
  int32_t max_draft;        ///< tokens to draft at most, 0 = none; an artifact
                            ///< without speculation drafts none
};

/// Bounds of what an iteration drafts: tokens for a sequence, and tokens that a
/// lookup compares.
#define LLM_MAX_DRAFT 16
#define LLM_MAX_LOOKUP 16

/// Costs of steps with drafts are multiples of 1 / this of a step without, and
/// no step costs more than LLM_MAX_DRAFT_COST.
#define LLM_DRAFT_COST_UNIT 1000
#define LLM_MAX_DRAFT_COST 1000000

#ifdef __cplusplus
}
#endif
#endif // LLM_ABI_STEP_H
