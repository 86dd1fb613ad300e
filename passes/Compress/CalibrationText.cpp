//===- CalibrationText.cpp - The tokens that calibration runs -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/CalibrationText.h"

#include "lib/Support/WeightData.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::llm {

/// Bytes of text for a token at most: what lies behind is not looked at, so
/// that a huge file takes no longer than one that is just large enough.
static constexpr uint64_t kTokenBytes = 32;

static FailureOr<std::shared_ptr<::llm::MappedFile>>
openText(ModuleOp module, StringRef path, StringRef what) {
  auto file = ::llm::MappedFile::open(path);
  if (!file)
    return module.emitError() << "cannot read the " << what << " '" << path
                              << "': " << file.getError().message();
  return *file;
}

static StringRef contentOf(const ::llm::MappedFile &file) {
  return {file.bytes().data(), file.bytes().size()};
}

static void addWindows(ArrayRef<int32_t> ids, std::optional<int32_t> lead,
                       int64_t context, Samples &samples) {
  size_t step = context - (lead ? 1 : 0);
  for (size_t begin = 0; begin < ids.size(); begin += step) {
    std::vector<int32_t> &window = samples.emplace_back();
    if (lead)
      window.push_back(*lead);
    ArrayRef<int32_t> part =
        ids.slice(begin, std::min(step, ids.size() - begin));
    window.insert(window.end(), part.begin(), part.end());
  }
}

/// Where to cut a text near `at`, from `least` on: behind a line, else where a
/// character ends.
static size_t cutBefore(StringRef text, size_t at, size_t least) {
  if (at >= text.size())
    return text.size();
  size_t line = text.take_front(at).rfind('\n');
  if (line != StringRef::npos && line + 1 > least)
    return line + 1;
  while (at > least && (text[at] & 0xc0) == 0x80)
    --at;
  return at;
}

/// Pieces of at most `most` bytes in all, which lie evenly in the text.
static SmallVector<StringRef> pickPieces(StringRef text, size_t most) {
  if (text.size() <= most)
    return {text};
  constexpr size_t kPieces = 16;
  SmallVector<StringRef> pieces;
  size_t length = std::max<size_t>(most / kPieces, 1), stop = 0;
  for (size_t i = 0; i < kPieces; ++i) {
    size_t at = text.size() / kPieces * i;
    size_t begin =
        i ? cutBefore(text, at, std::max(stop, at - std::min(at, length / 2)))
          : 0;
    stop = cutBefore(text, begin + length, begin + length / 2);
    pieces.push_back(text.slice(begin, stop));
  }
  return pieces;
}

static FailureOr<Samples> readText(ModuleOp module,
                                   const ::llm::ModuleRunner &runner,
                                   const CalibrationOptions &options) {
  auto file = openText(module, options.text, "calibration text");
  if (failed(file))
    return failure();
  StringRef text = contentOf(**file);
  uint64_t most = options.samples * options.context * kTokenBytes;
  Samples samples;
  for (StringRef piece : pickPieces(text, most)) {
    auto encoded = runner.encode(module, options.tokenizer, piece);
    if (failed(encoded))
      return failure();
    if (encoded->lead && options.context < 2)
      return module.emitError("context must be 2 or more: the tokenizer puts a "
                              "token in front of each sample");
    addWindows(encoded->ids, encoded->lead, options.context, samples);
    if (samples.size() > 1 &&
        static_cast<int64_t>(samples.back().size()) < options.context)
      samples.pop_back();
  }
  return samples;
}

static FailureOr<Samples> readTokens(ModuleOp module,
                                     const CalibrationOptions &options) {
  auto file = openText(module, options.tokens, "token file");
  if (failed(file))
    return failure();
  Samples samples;
  StringRef rest = contentOf(**file);
  for (int64_t number = 1; !rest.empty(); ++number) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    std::vector<int32_t> ids;
    while (!(line = line.ltrim(" \t\r,")).empty()) {
      StringRef word = line.take_until([](char c) {
        return c == ' ' || c == '\t' || c == '\r' || c == ',';
      });
      line = line.drop_front(word.size());
      int32_t id = 0;
      if (word.getAsInteger(10, id) || id < 0) {
        std::string shown;
        ::llvm::raw_string_ostream os(shown);
        ::llvm::printEscapedString(word.take_front(40), os);
        return module.emitError() << options.tokens << ":" << number << ": '"
                                  << shown << "' is no token id";
      }
      ids.push_back(id);
    }
    addWindows(ids, std::nullopt, options.context, samples);
  }
  return samples;
}

FailureOr<Samples> readSamples(ModuleOp module,
                               const ::llm::ModuleRunner &runner,
                               CalibrationOptions options) {
  if (auto given = module->getAttrOfType<DictionaryAttr>(kCalibrationAttr);
      given && options.text.empty() && options.tokens.empty()) {
    auto get = [&](StringRef name) {
      auto text = given.getAs<StringAttr>(name);
      return text ? text.str() : std::string();
    };
    options.text = get("text");
    options.tokens = get("tokens");
    if (options.tokenizer.empty())
      options.tokenizer = get("tokenizer");
  }
  if (options.samples < 1 || options.samples > 1 << 20 || options.context < 1 ||
      options.context > 1 << 20)
    return module.emitError("samples and context are from 1 to 1048576");
  if (options.text.empty() == options.tokens.empty())
    return module.emitError(
        options.text.empty()
            ? "calibration needs a text: text=FILE, tokens=FILE, or "
              "--calibration of llm-compile"
            : "text and tokens exclude each other");
  FailureOr<Samples> read = options.tokens.empty()
                                ? readText(module, runner, options)
                                : readTokens(module, options);
  if (failed(read))
    return failure();
  const std::string &path =
      options.tokens.empty() ? options.text : options.tokens;
  if (read->empty())
    return module.emitError() << "'" << path << "' holds no token";
  auto wanted = static_cast<size_t>(options.samples), count = read->size();
  if (count < wanted)
    module.emitWarning() << "'" << path << "' gives " << count << " of "
                         << wanted << " samples of " << options.context
                         << " tokens";
  if (count <= wanted)
    return read;
  Samples chosen;
  for (size_t i = 0; i < wanted; ++i)
    chosen.push_back(std::move((*read)[i * count / wanted]));
  return chosen;
}

} // namespace mlir::llm
