//===- kernel.h - How the runtime calls generated code ----------*- C -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CPU code object is a position-independent ELF shared object without
// undefined symbols. It exports exactly one symbol, LLM_KERNEL_TABLE_SYMBOL, an
// `llm_kernel_table`.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_ABI_KERNEL_H
#define LLM_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LLM_KERNEL_ABI_VERSION 1
#define LLM_KERNEL_TABLE_SYMBOL "llm_kernel_table"

/// A dispatch kernel. `buffers` are the operands of the dispatch in order
/// (bare pointers, 64-byte aligned), `sizes` its int64 size arguments in order.
/// The call computes the work items [begin, end) of a one-dimensional grid.
/// Items are independent: any split over threads gives the same bits.
typedef void (*llm_kernel_fn)(void *const *buffers, const int64_t *sizes,
                              int64_t begin, int64_t end);

/// A tensor that crosses the boundary of a host function. Data is dense, row
/// major and owned by `llm_host.allocate`.
struct llm_tensor {
  void *data;
  int64_t rank;
  int64_t *dims;        ///< [rank]
  int32_t element_type; ///< the artifact's ElementType
};

/// What a host function may call. `allocate` returns 64-byte aligned memory or
/// null when the request's memory limit is reached; `fail` records the message
/// of the first error, after which the function returns 1.
struct llm_host {
  void *context;
  void *(*allocate)(void *context, int64_t bytes);
  void (*release)(void *context, void *pointer);
  void (*fail)(void *context, const char *message);
};

/// A host function (the generic path): reads `inputs`, fills `outputs`
/// (allocating their data and dims), returns 0, or 1 after `fail`.
typedef int32_t (*llm_host_fn)(const struct llm_host *host,
                               const struct llm_tensor *inputs,
                               struct llm_tensor *outputs,
                               const void *const *constants);

struct llm_kernel_entry {
  const char *name;
  void *function; ///< llm_kernel_fn or llm_host_fn, as the manifest says
};

struct llm_kernel_table {
  uint32_t abi_version;
  uint32_t num_entries;
  const struct llm_kernel_entry *entries;
};

#ifdef __cplusplus
}
#endif
#endif // LLM_ABI_KERNEL_H
