//===- emulator.h - How the emulator runs GPU kernels -----------*- C -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A code object for the target "cuda-emulator" is a CPU code object
// (include/llm/ABI/kernel.h) whose table entries point to llm_emulator_kernel.
// A kernel is the GPU's code compiled for the CPU: one call is one CUDA thread,
// on a stack of its own. What a thread cannot do alone it asks of the runtime,
// through a table that is passed to it. Functions of the table that wait for
// other threads switch stacks; any of them may find a fault, after which it
// never returns.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_ABI_EMULATOR_H
#define LLM_ABI_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Raised when anything below changes. A kernel records the version it was
/// compiled for, the runtime refuses another one.
#define LLM_EMULATOR_ABI_VERSION 1

struct llm_emulator_thread;

enum llm_emulator_register {
  LLM_EMULATOR_THREAD_X, ///< index in the block
  LLM_EMULATOR_THREAD_Y,
  LLM_EMULATOR_THREAD_Z,
  LLM_EMULATOR_BLOCK_X, ///< index in the grid
  LLM_EMULATOR_BLOCK_Y,
  LLM_EMULATOR_BLOCK_Z,
  LLM_EMULATOR_BLOCK_SIZE_X, ///< threads of a block
  LLM_EMULATOR_BLOCK_SIZE_Y,
  LLM_EMULATOR_BLOCK_SIZE_Z,
  LLM_EMULATOR_GRID_SIZE_X, ///< blocks of the grid
  LLM_EMULATOR_GRID_SIZE_Y,
  LLM_EMULATOR_GRID_SIZE_Z,
  LLM_EMULATOR_LANE,
  LLM_EMULATOR_WARP,
  LLM_EMULATOR_WARP_SIZE,
};

/// What an access does to memory.
enum llm_emulator_access {
  LLM_EMULATOR_READ = 1,
  LLM_EMULATOR_WRITE = 2,
  LLM_EMULATOR_ATOMIC = 4
};

/// Where an access may go: an operand's number, or
enum llm_emulator_space {
  LLM_EMULATOR_SHARED = -1,   ///< the block's shared memory
  LLM_EMULATOR_ANYWHERE = -2, ///< any operand or shared memory
};

enum llm_emulator_shuffle_kind {
  LLM_EMULATOR_SHUFFLE_XOR,
  LLM_EMULATOR_SHUFFLE_UP,
  LLM_EMULATOR_SHUFFLE_DOWN,
  LLM_EMULATOR_SHUFFLE_INDEX,
};

enum llm_emulator_reduce_kind {
  LLM_EMULATOR_REDUCE_ADD,
  LLM_EMULATOR_REDUCE_AND,
  LLM_EMULATOR_REDUCE_MAX,
  LLM_EMULATOR_REDUCE_MIN,
  LLM_EMULATOR_REDUCE_OR,
  LLM_EMULATOR_REDUCE_UMAX,
  LLM_EMULATOR_REDUCE_UMIN,
  LLM_EMULATOR_REDUCE_XOR,
};

enum llm_emulator_vote_kind {
  LLM_EMULATOR_VOTE_ANY,
  LLM_EMULATOR_VOTE_ALL,
  LLM_EMULATOR_VOTE_UNI,
  LLM_EMULATOR_VOTE_BALLOT,
};

/// mma.sync m16n8k16, row times column, accumulating in f32.
enum llm_emulator_matrix_kind {
  LLM_EMULATOR_MATRIX_F16,
  LLM_EMULATOR_MATRIX_BF16,
};

/// A place in a kernel that the runtime may have to name: every access, barrier
/// and warp operation has one. Numbers of sites are indices into the kernel's
/// list.
struct llm_emulator_site {
  const char *location; ///< what is done there, and for which operation
  int32_t space;        ///< accesses: operand, or llm_emulator_space
  int32_t access;       ///< accesses: llm_emulator_access, or-ed; else 0
  int32_t bytes;        ///< accesses
  int32_t alignment;    ///< accesses: what the address is a multiple of
};

/// What a kernel may call. `site` is the number of the place it calls from.
struct llm_emulator_api {
  uint32_t abi_version; ///< LLM_EMULATOR_ABI_VERSION
  uint32_t reserved;    ///< 0
  int32_t (*special_register)(struct llm_emulator_thread *thread,
                              int32_t which);
  /// The block's shared memory, aligned to 1024 bytes.
  void *(*shared)(struct llm_emulator_thread *thread);
  /// Checks the access of `site` at `address`, before it happens.
  void (*access)(struct llm_emulator_thread *thread, uint32_t site,
                 const void *address);
  /// Barrier `id` (0 to 15) of the whole block.
  void (*barrier)(struct llm_emulator_thread *thread, uint32_t site,
                  int32_t id);
  void (*sync_warp)(struct llm_emulator_thread *thread, uint32_t site,
                    uint32_t mask);
  /// shfl.sync. `clamp` is PTX's operand c. `*valid` becomes 1 where the source
  /// lane is in range, else 0.
  uint32_t (*shuffle)(struct llm_emulator_thread *thread, uint32_t site,
                      int32_t kind, uint32_t mask, uint32_t value,
                      uint32_t lane, uint32_t clamp, int32_t *valid);
  uint32_t (*reduce)(struct llm_emulator_thread *thread, uint32_t site,
                     int32_t kind, uint32_t mask, uint32_t value);
  /// The ballot's bits, or 0 and 1.
  uint32_t (*vote)(struct llm_emulator_thread *thread, uint32_t site,
                   int32_t kind, uint32_t mask, int32_t predicate);
  /// ldmatrix of `count` (1, 2 or 4) 8 x 8 matrices of 16 bits; `row` is the
  /// address of the lane's row.
  void (*load_matrix)(struct llm_emulator_thread *thread, uint32_t site,
                      uint32_t *out, const void *row, int32_t count,
                      int32_t transposed);
  /// d = a * b + c on the fragments of one lane: a has 4 words, b 2, c and d 4
  /// f32.
  void (*multiply_matrix)(struct llm_emulator_thread *thread, uint32_t site,
                          int32_t kind, float *d, const uint32_t *a,
                          const uint32_t *b, const float *c);
  /// cp.async of `bytes` (4, 8 or 16) to shared memory: `source_bytes` are
  /// read, the rest is zero. Happens when it is waited for.
  void (*copy_async)(struct llm_emulator_thread *thread, uint32_t site,
                     void *to, const void *from, int32_t bytes,
                     int32_t source_bytes);
  void (*commit_copies)(struct llm_emulator_thread *thread);
  /// Waits until at most `pending` groups of the thread's copies are open.
  void (*wait_copies)(struct llm_emulator_thread *thread, uint32_t site,
                      int32_t pending);
};

/// One CUDA thread from start to end. `buffers` and `sizes` as in
/// llm_kernel_fn. Returns 0.
typedef int32_t (*llm_emulator_fn)(const struct llm_emulator_api *api,
                                   struct llm_emulator_thread *thread,
                                   void *const *buffers, const int64_t *sizes);

struct llm_emulator_kernel {
  uint32_t abi_version; ///< LLM_EMULATOR_ABI_VERSION
  uint32_t num_buffers;
  uint32_t num_sizes;
  uint32_t shared_bytes;
  uint32_t num_sites;
  uint32_t block_threads; ///< what the kernel was compiled for; 0: any
  const char *name;
  llm_emulator_fn function;
  const struct llm_emulator_site *sites; ///< [num_sites]
};

#ifdef __cplusplus
}
#endif
#endif // LLM_ABI_EMULATOR_H
