//===- Decoder.h - pieces to text ------------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The decoders of tokenizer.json: pieces back to text, as a stream.

#ifndef LLM_RUNTIME_TOKENIZER_DECODER_H
#define LLM_RUNTIME_TOKENIZER_DECODER_H

#include "runtime/core/Status.h"
#include "runtime/tokenizer/Regex.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// One stage of a running decoder, which passes what it makes to the next.
class DecodeStage {
public:
  virtual ~DecodeStage() = default;
  /// Takes text: a piece, or, behind a stage that fuses pieces, the next part
  /// of the one piece they become. `begins` says that a piece starts here.
  virtual Status push(std::string_view text, bool begins) = 0;
  /// Gives out what was held back. The end of the text.
  virtual Status flush() = 0;
};

/// A sequence of decoders: ByteLevel, ByteFallback, Fuse, Replace, Strip,
/// Metaspace.
class Decoder {
public:
  /// Joins the pieces with spaces, which is the meaning of no decoder.
  Decoder() = default;
  /// Reads the member "decoder". Unsupported, with its name, for any other
  /// component.
  static Expected<Decoder> parse(const nlohmann::json &component);

  struct Options {
    /// Text precedes: nothing is stripped at the beginning.
    bool continuation = false;
    /// Hold a run of byte pieces back until it ends. A run with an invalid
    /// sequence in it then becomes U+FFFD per byte as a whole, which is what
    /// the `tokenizers` library does to a complete text; otherwise characters
    /// are given out as soon as they are complete.
    bool wholeByteRuns = false;
  };
  /// Starts a decoder that appends to `out`, which outlives it as this does.
  std::unique_ptr<DecodeStage> start(std::string &out, Options options) const;

private:
  struct Step {
    enum Kind {
      Join,
      ByteLevel,
      ByteFallback,
      Fuse,
      Replace,
      Strip,
      Metaspace
    } kind = Join;
    std::string content;
    size_t stripStart = 0, stripStop = 0;
    bool dropsFirst = true;       // Metaspace: not at the beginning of the text
    bool needsWholePiece = false; // Replace: a match may span parts
    std::vector<Regex> pattern;   // Replace: exactly one
  };

  Status add(const nlohmann::json &component);
  static Status readStrip(const nlohmann::json &component, Step &step);
  std::vector<Step> steps = std::vector<Step>(1);
  size_t growth = 1; ///< of a text by all replacements, at most
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_DECODER_H
