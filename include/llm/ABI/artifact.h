//===- artifact.h - The container of a .llmx file ---------------*- C -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout, little endian:
//
//   0                 llm_artifact_header (64 bytes)
//   64                manifest: llm.artifact.Manifest, serialised
//   manifest end, up to the next multiple of 4096: zeros
//   payload offsets   payloads in ascending order; weights start at multiples
//                     of LLM_PAYLOAD_ALIGNMENT, the rest at multiples of 4096;
//                     gaps are zeros
//   file_size         end
//
// Checksums are XXH3-64; a payload's is that of the checksums of its blocks of
// LLM_CHECKSUM_BLOCK bytes (the last one possibly shorter), 8 bytes each, one
// after the other. They detect damage, not malice: an artifact holds native
// code and is trusted like a program.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_ABI_ARTIFACT_H
#define LLM_ABI_ARTIFACT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LLM_ARTIFACT_MAGIC "LLMX\r\n\x1a\n"
#define LLM_ARTIFACT_VERSION 2
#define LLM_PAYLOAD_ALIGNMENT (2u << 20)
#define LLM_CHECKSUM_BLOCK (1u << 20)
/// Extended attribute of the file: how long its passes took. Not a part of the
/// artifact, whose bytes depend on its inputs alone.
#define LLM_PASS_SECONDS_ATTRIBUTE "user.llm.pass-seconds"

struct llm_artifact_header {
  char magic[8];
  uint32_t version; ///< LLM_ARTIFACT_VERSION
  uint32_t flags;   ///< 0
  uint64_t manifest_size;
  uint64_t manifest_checksum;
  uint64_t file_size;
  uint64_t reserved[2];     ///< 0
  uint64_t header_checksum; ///< of the 56 bytes before it
};

#ifdef __cplusplus
}
static_assert(sizeof(llm_artifact_header) == 64, "the header is 64 bytes");
#endif
#endif // LLM_ABI_ARTIFACT_H
