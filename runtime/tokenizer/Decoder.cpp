//===- Decoder.cpp - pieces to text ---------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Decoder.h"

#include "runtime/tokenizer/ByteAlphabet.h"
#include "runtime/tokenizer/Growth.h"
#include "runtime/tokenizer/Json.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace llm::runtime {

using json::Json;
using unicode::replacementCharacter;

namespace {

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// The end of the chain.
class Output final : public DecodeStage {
public:
  explicit Output(std::string &out) : out(out) {}
  Status push(std::string_view text, bool) override {
    out += text;
    return Status::success();
  }
  Status flush() override { return Status::success(); }

private:
  std::string &out;
};

class Stage : public DecodeStage {
public:
  explicit Stage(std::unique_ptr<DecodeStage> next) : next(std::move(next)) {}
  Status flush() override { return next->flush(); }

protected:
  std::unique_ptr<DecodeStage> next;
};

class Join final : public Stage {
public:
  Join(std::unique_ptr<DecodeStage> next, bool continuation)
      : Stage(std::move(next)), first(!continuation) {}
  Status push(std::string_view text, bool begins) override {
    std::string joined(first || !begins ? "" : " ");
    first = false;
    return next->push(joined += text, begins);
  }

private:
  bool first;
};

/// Makes one piece of all.
class Fuse final : public Stage {
public:
  Fuse(std::unique_ptr<DecodeStage> next, bool continuation)
      : Stage(std::move(next)), first(!continuation) {}
  Status push(std::string_view text, bool) override {
    return next->push(text, std::exchange(first, false));
  }

private:
  bool first;
};

/// Bytes from their stand-ins; holds an incomplete character back.
class ByteLevel final : public Stage {
public:
  ByteLevel(std::unique_ptr<DecodeStage> next, bool continuation)
      : Stage(std::move(next)), first(!continuation) {}

  Status push(std::string_view text, bool) override {
    // A piece with a character outside the alphabet stands for itself.
    std::optional<std::string> bytes = fromByteAlphabet(text);
    stream.append(bytes ? std::string_view(*bytes) : text);
    return give();
  }
  Status flush() override {
    stream.flush();
    LLM_RETURN_IF_ERROR(give());
    return next->flush();
  }

private:
  Status give() {
    if (ready.empty())
      return Status::success();
    return next->push(std::exchange(ready, {}), std::exchange(first, false));
  }

  bool first;
  std::string ready;
  unicode::LossyStream stream{ready};
};

/// Characters from pieces "<0xE2>".
class ByteFallback final : public Stage {
public:
  ByteFallback(std::unique_ptr<DecodeStage> next, bool wholeRuns)
      : Stage(std::move(next)), wholeRuns(wholeRuns) {}

  Status push(std::string_view text, bool begins) override {
    std::optional<unsigned char> byte = begins ? byteOf(text) : std::nullopt;
    if (!byte) {
      LLM_RETURN_IF_ERROR(endRun());
      return next->push(text, begins);
    }
    held += static_cast<char>(*byte);
    if (wholeRuns)
      return Status::success();
    // At most three bytes of one character are ever held.
    unicode::Decoded at = unicode::decodeAt(held, 0);
    while (!held.empty() && at.kind != unicode::Decoded::Incomplete) {
      LLM_RETURN_IF_ERROR(
          give(at.length, at.kind == unicode::Decoded::Character));
      if (!held.empty())
        at = unicode::decodeAt(held, 0);
    }
    return Status::success();
  }
  Status flush() override {
    LLM_RETURN_IF_ERROR(endRun());
    return next->flush();
  }

private:
  static std::optional<unsigned char> byteOf(std::string_view text) {
    unsigned value = 0;
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
      return std::nullopt;
    auto [end, error] =
        std::from_chars(text.data() + 3, text.data() + 5, value, 16);
    if (error != std::errc() || end != text.data() + 5)
      return std::nullopt;
    return static_cast<unsigned char>(value);
  }
  Status give(size_t length, bool valid) {
    std::string text = held.substr(0, length);
    held.erase(0, length);
    if (valid)
      return next->push(text, true);
    for (size_t i = 0; i < length; ++i)
      LLM_RETURN_IF_ERROR(next->push(replacementCharacter, true));
    return Status::success();
  }
  Status endRun() {
    if (held.empty())
      return Status::success();
    return give(held.size(), unicode::isValid(held));
  }

  bool wholeRuns;
  std::string held;
};

class Replace final : public Stage {
public:
  Replace(std::unique_ptr<DecodeStage> next, const Regex &pattern,
          std::string_view content, bool wholePieces)
      : Stage(std::move(next)), pattern(pattern), content(content),
        wholePieces(wholePieces) {}

  Status push(std::string_view text, bool begins) override {
    if (!wholePieces)
      return give(text, begins);
    if (begins)
      LLM_RETURN_IF_ERROR(giveHeld());
    if (!holds)
      heldBegins = begins;
    holds = true;
    held += text;
    return Status::success();
  }
  Status flush() override {
    LLM_RETURN_IF_ERROR(giveHeld());
    return next->flush();
  }

private:
  Status give(std::string_view text, bool begins) {
    LLM_ASSIGN_OR_RETURN(std::string replaced,
                         replaceAll(pattern, text, content));
    return next->push(replaced, begins);
  }
  Status giveHeld() {
    if (!std::exchange(holds, false))
      return Status::success();
    return give(std::exchange(held, {}), heldBegins);
  }

  const Regex &pattern;
  std::string_view content;
  bool wholePieces;
  bool holds = false, heldBegins = false;
  std::string held;
};

/// Takes up to `start` leading and `stop` trailing `content` off each piece.
class Strip final : public Stage {
public:
  Strip(std::unique_ptr<DecodeStage> next, std::string_view content,
        size_t start, size_t stop)
      : Stage(std::move(next)), content(content), start(start), stop(stop) {}

  Status push(std::string_view text, bool begins) override {
    if (begins) {
      // What was held back ended the piece before.
      held = 0;
      left = start;
    }
    while (left > 0 && text.starts_with(content)) {
      text.remove_prefix(content.size());
      --left;
    }
    if (!text.empty())
      left = 0;
    // Hold trailing ones back: they go if the piece ends here.
    std::string out;
    std::string_view rest = text;
    size_t trailing = 0;
    while (trailing < stop && rest.ends_with(content)) {
      rest.remove_suffix(content.size());
      ++trailing;
    }
    if (!rest.empty()) {
      appendHeld(out, held);
      held = trailing;
    } else if (held + trailing > stop) {
      appendHeld(out, held + trailing - stop);
      held = stop;
    } else {
      held += trailing;
    }
    return next->push(out += rest, begins);
  }

private:
  void appendHeld(std::string &out, size_t count) {
    for (size_t i = 0; i < count; ++i)
      out += content;
  }

  std::string_view content;
  size_t start, stop;
  size_t left = 0, held = 0;
};

/// Spaces from their stand-ins, none at the beginning of the text.
class Metaspace final : public Stage {
public:
  Metaspace(std::unique_ptr<DecodeStage> next, std::string_view content,
            bool dropsFirst, bool continuation)
      : Stage(std::move(next)), content(content), dropsFirst(dropsFirst),
        pieces(continuation ? 1 : 0) {}

  Status push(std::string_view text, bool begins) override {
    if (begins && pieces < 2)
      ++pieces;
    std::string out;
    for (size_t i = 0; i < text.size();) {
      if (text.substr(i).starts_with(content)) {
        if (pieces > 1 || !dropsFirst)
          out += ' ';
        i += content.size();
      } else {
        out += text[i++];
      }
    }
    return next->push(out, begins);
  }

private:
  std::string_view content;
  bool dropsFirst;
  int pieces;
};

} // namespace

//===----------------------------------------------------------------------===//
// Decoder
//===----------------------------------------------------------------------===//

Expected<Decoder> Decoder::parse(const Json &component) {
  Decoder decoder;
  if (component.is_null())
    return decoder;
  decoder.steps.clear();
  LLM_RETURN_IF_ERROR(decoder.add(component));
  return decoder;
}

Status Decoder::readStrip(const Json &component, Step &step) {
  LLM_ASSIGN_OR_RETURN(step.content, json::requireString(component, "content"));
  auto count = [&](std::string_view key) -> std::optional<int32_t> {
    const Json *value = json::find(component, key);
    return value ? json::asTokenId(*value) : std::nullopt;
  };
  std::optional<int32_t> start = count("start"), stop = count("stop");
  if (step.content.empty() || !start || !stop)
    return Status::invalidInput("Strip without 'content', 'start', 'stop'");
  step.stripStart = static_cast<size_t>(*start);
  step.stripStop = static_cast<size_t>(*stop);
  return Status::success();
}

Status Decoder::add(const Json &component) {
  LLM_RETURN_IF_ERROR(checkComponents(steps.size()));
  LLM_ASSIGN_OR_RETURN(std::string type, json::componentType(component));
  if (type == "Sequence") {
    const Json *parts = json::find(component, "decoders");
    if (!parts || !parts->is_array())
      return Status::invalidInput("Sequence without 'decoders'");
    for (const Json &part : *parts)
      LLM_RETURN_IF_ERROR(add(part));
    return Status::success();
  }
  bool fused = std::any_of(steps.begin(), steps.end(), [](const Step &step) {
    return step.kind == Step::Fuse || step.kind == Step::ByteLevel;
  });
  Step step;
  if (type == "ByteLevel") {
    step.kind = Step::ByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = Step::ByteFallback;
  } else if (type == "Fuse") {
    step.kind = Step::Fuse;
  } else if (type == "Replace") {
    step.kind = Step::Replace;
    LLM_ASSIGN_OR_RETURN(step.content,
                         json::requireString(component, "content"));
    LLM_ASSIGN_OR_RETURN(Regex pattern, parsePattern(component));
    step.pattern.push_back(std::move(pattern));
    // Parts of a fused piece hold whole characters, so a pattern of one
    // character never spans two.
    LLM_ASSIGN_OR_RETURN(std::string literal,
                         json::getString(component["pattern"], "String", ""));
    // A regular expression may match before every byte.
    growth *= literal.empty()
                  ? step.content.size() + 1
                  : std::max<size_t>(step.content.size() / literal.size(), 1);
    if (growth > maxGrown(0))
      return Status::unsupported("decoder that makes a text " +
                                 std::to_string(growth) + " times as long");
    bool oneCharacter = !literal.empty() &&
                        unicode::decodeAt(literal, 0).length == literal.size();
    step.needsWholePiece = fused && !oneCharacter;
  } else if (type == "Strip") {
    step.kind = Step::Strip;
    LLM_RETURN_IF_ERROR(readStrip(component, step));
  } else if (type == "Metaspace") {
    step.kind = Step::Metaspace;
    LLM_ASSIGN_OR_RETURN(step.content,
                         json::getString(component, "replacement", "▁"));
    LLM_ASSIGN_OR_RETURN(std::string scheme,
                         json::getString(component, "prepend_scheme", ""));
    LLM_ASSIGN_OR_RETURN(bool prefix,
                         json::getBool(component, "add_prefix_space", true));
    step.dropsFirst = scheme.empty() ? prefix : scheme != "never";
    if (step.content.empty())
      return Status::invalidInput("Metaspace: 'replacement' is empty");
  } else {
    return Status::unsupported("decoder '" + type + "'");
  }
  steps.push_back(std::move(step));
  return Status::success();
}

std::unique_ptr<DecodeStage> Decoder::start(std::string &out,
                                            Options options) const {
  std::unique_ptr<DecodeStage> stage = std::make_unique<Output>(out);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    switch (step->kind) {
    case Step::Join:
      stage = std::make_unique<Join>(std::move(stage), options.continuation);
      break;
    case Step::ByteLevel:
      stage =
          std::make_unique<ByteLevel>(std::move(stage), options.continuation);
      break;
    case Step::ByteFallback:
      stage = std::make_unique<ByteFallback>(std::move(stage),
                                             options.wholeByteRuns);
      break;
    case Step::Fuse:
      stage = std::make_unique<Fuse>(std::move(stage), options.continuation);
      break;
    case Step::Replace:
      stage = std::make_unique<Replace>(std::move(stage), step->pattern.front(),
                                        step->content, step->needsWholePiece);
      break;
    case Step::Strip:
      stage = std::make_unique<Strip>(std::move(stage), step->content,
                                      step->stripStart, step->stripStop);
      break;
    case Step::Metaspace:
      stage =
          std::make_unique<Metaspace>(std::move(stage), step->content,
                                      step->dropsFirst, options.continuation);
      break;
    }
  }
  return stage;
}

} // namespace llm::runtime
