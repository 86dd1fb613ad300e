//===- ManifestVerifier.cpp - Checking what a manifest says ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "llm/ABI/artifact.h"
#include "llm/ABI/kernel.h"
#include "llm/ABI/step.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/ElementTypes.h"
#include "runtime/core/Expr.h"

#include <cmath>
#include <string_view>
#include <unordered_set>

namespace llm::runtime {

namespace {

using namespace artifact;

constexpr uint64_t payloadAlignment = 4096;
constexpr uint64_t weightAlignment = 64;
constexpr int64_t maxRank = 32;
/// Slots are int32.
constexpr uint32_t maxContext = 1u << 28;

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string numbered(const char *what, int index, std::string_view name) {
  return std::string(what) + " " + std::to_string(index) +
         (name.empty() ? "" : " " + quoted(name));
}

/// Names appear in messages and select table entries: printable ASCII or UTF-8
/// without control characters (protobuf has checked the UTF-8), not endless.
Status verifyName(const std::string &name, bool mayBeEmpty = false) {
  if (name.empty() && !mayBeEmpty)
    return Status::invalidInput("a name is empty");
  if (name.size() > 4096)
    return Status::invalidInput("a name has " + std::to_string(name.size()) +
                                " bytes");
  for (unsigned char c : name)
    if (c < 0x20 || c == 0x7f)
      return Status::invalidInput("a name has a control character");
  return Status::success();
}

Status verifyIndex(const char *what, uint32_t index, int count) {
  if (index >= static_cast<uint32_t>(count))
    return Status::invalidInput(std::string(what) + " " +
                                std::to_string(index) + " of " +
                                std::to_string(count));
  return Status::success();
}

class Verifier {
public:
  Verifier(const Manifest &manifest, uint64_t fileSize)
      : manifest(manifest), fileSize(fileSize) {}

  Status run() {
    LLM_RETURN_IF_ERROR(versions());
    LLM_RETURN_IF_ERROR(payloads());
    LLM_RETURN_IF_ERROR(weights());
    LLM_RETURN_IF_ERROR(cacheGroups());
    std::unordered_set<std::string> names;
    for (int i = 0; i < manifest.programs_size(); ++i) {
      const Program &each = manifest.programs(i);
      std::string where = numbered("program", i, each.name());
      LLM_RETURN_IF_ERROR(program(each).withContext(where));
      if (!names.insert(each.target() + "\n" + each.name()).second)
        return Status::invalidInput(where + ": the name is used twice");
    }
    for (int i = 0; i < manifest.host_functions_size(); ++i) {
      const HostFunction &each = manifest.host_functions(i);
      LLM_RETURN_IF_ERROR(hostFunction(each).withContext(
          numbered("host function", i, each.name())));
    }
    LLM_RETURN_IF_ERROR(iterations());
    LLM_RETURN_IF_ERROR(tokenizer().withContext("tokenizer"));
    LLM_RETURN_IF_ERROR(generation().withContext("generation"));
    LLM_RETURN_IF_ERROR(certificate().withContext("certificate"));
    for (const PassRecord &pass : manifest.passes())
      if (!std::isfinite(pass.kl()))
        return Status::invalidInput("pass " + quoted(pass.name()) +
                                    ": its KL divergence is not a number");
    return Status::success();
  }

private:
  Status versions() {
    auto check = [&](const char *what, uint32_t theirs,
                     uint32_t ours) -> Status {
      if (theirs == ours)
        return Status::success();
      return Status::unsupported(
          std::string(what) + " version " + std::to_string(theirs) +
          " (compiler " + quoted(manifest.compiler().substr(0, 64)) +
          "), but this runtime has version " + std::to_string(ours) +
          ": compile the model again with the llm-compile of this release, or "
          "use the llm-run that belongs to the artifact");
    };
    LLM_RETURN_IF_ERROR(
        check("kernel ABI", manifest.kernel_abi(), LLM_KERNEL_ABI_VERSION));
    return check("step ABI", manifest.step_abi(), LLM_STEP_ABI_VERSION);
  }

  Status payloads() {
    uint64_t end = 0;
    for (int i = 0; i < manifest.payloads_size(); ++i) {
      const Payload &payload = manifest.payloads(i);
      LLM_RETURN_IF_ERROR(
          this->payload(payload, end)
              .withContext(numbered("payload", i, payload.name())));
      end = payload.offset() + payload.size();
    }
    return Status::success();
  }

  Status payload(const Payload &payload, uint64_t end) {
    LLM_RETURN_IF_ERROR(verifyName(payload.name(), true));
    LLM_RETURN_IF_ERROR(verifyName(payload.target(), true));
    LLM_RETURN_IF_ERROR(verifyName(payload.arch(), true));
    for (const std::string &feature : payload.features())
      LLM_RETURN_IF_ERROR(verifyName(feature));
    if (payload.kind() != Payload::CODE && payload.kind() != Payload::WEIGHTS &&
        payload.kind() != Payload::TOKENIZER)
      return Status::unsupported("its kind " + std::to_string(payload.kind()) +
                                 " is not known");
    if (payload.kind() == Payload::CODE && payload.target().empty())
      return Status::invalidInput("code without a target");
    if (payload.size() > fileSize ||
        payload.offset() > fileSize - payload.size())
      return Status::invalidInput("it does not lie in the file");
    if (payload.offset() < end)
      return Status::invalidInput("it overlaps the payload before it");
    uint64_t alignment = payload.kind() == Payload::WEIGHTS
                             ? uint64_t(LLM_PAYLOAD_ALIGNMENT)
                             : payloadAlignment;
    if (payload.offset() % alignment != 0)
      return Status::invalidInput("its offset is not a multiple of " +
                                  std::to_string(alignment));
    return Status::success();
  }

  Status weights() {
    for (int i = 0; i < manifest.weights_size(); ++i) {
      const Weight &weight = manifest.weights(i);
      LLM_RETURN_IF_ERROR(this->weight(weight).withContext(
          numbered("weight", i, weight.name())));
    }
    return Status::success();
  }

  Status weight(const Weight &weight) {
    LLM_RETURN_IF_ERROR(verifyName(weight.name()));
    LLM_RETURN_IF_ERROR(verifyName(weight.layout(), true));
    LLM_RETURN_IF_ERROR(
        verifyIndex("payload", weight.payload(), manifest.payloads_size()));
    const Payload &payload =
        manifest.payloads(static_cast<int>(weight.payload()));
    if (payload.kind() != Payload::WEIGHTS)
      return Status::invalidInput("its payload does not hold weights");
    if (weight.size() > payload.size() ||
        weight.offset() > payload.size() - weight.size())
      return Status::invalidInput("it does not lie in its payload");
    if (weight.offset() % weightAlignment != 0)
      return Status::invalidInput("its offset is not a multiple of 64");
    if (elementBits(weight.element_type()) == 0)
      return Status::unsupported("its element type is not known");
    return shape(weight.logical_shape());
  }

  /// No negative size, and a product that fits.
  template <typename Sizes> Status shape(const Sizes &sizes) {
    if (sizes.size() > maxRank)
      return Status::invalidInput("it has " + std::to_string(sizes.size()) +
                                  " dimensions");
    int64_t product = 1;
    for (int64_t size : sizes)
      if (size < 0 || __builtin_mul_overflow(product, size, &product))
        return Status::invalidInput("its shape is negative or too large");
    return Status::success();
  }

  Status cacheGroups() {
    for (int i = 0; i < manifest.cache_groups_size(); ++i) {
      const CacheGroup &group = manifest.cache_groups(i);
      std::string where = numbered("cache group", i, "");
      if (group.num_layers() == 0 || group.num_layers() > 65536)
        return Status::invalidInput(where + ": it has " +
                                    std::to_string(group.num_layers()) +
                                    " layers");
      if (group.page_size() > maxContext)
        return Status::invalidInput(where + ": its pages are too large");
      if (group.planes_size() == 0)
        return Status::invalidInput(where + ": it has no plane");
      for (int p = 0; p < group.planes_size(); ++p)
        LLM_RETURN_IF_ERROR(
            plane(group.planes(p))
                .withContext(where + ", " +
                             numbered("plane", p, group.planes(p).name())));
    }
    return Status::success();
  }

  Status plane(const Plane &plane) {
    LLM_RETURN_IF_ERROR(verifyName(plane.name()));
    if (elementBits(plane.element_type()) == 0)
      return Status::unsupported("its element type is not known");
    if (plane.granularity() != Plane::TOKEN &&
        plane.granularity() != Plane::PAGE &&
        plane.granularity() != Plane::SEQUENCE)
      return Status::unsupported("its granularity is not known");
    LLM_RETURN_IF_ERROR(shape(plane.shape()));
    int64_t elements = 1;
    for (int64_t size : plane.shape())
      elements *= size;
    if (elements == 0)
      return Status::invalidInput("it has no elements");
    // Keeps products with numbers of slots and layers far from overflow.
    if (elements > (int64_t(1) << 32))
      return Status::invalidInput("it is too large");
    return Status::success();
  }

  Status program(const Program &program) {
    LLM_RETURN_IF_ERROR(verifyName(program.name()));
    LLM_RETURN_IF_ERROR(verifyName(program.target()));
    int numSymbols = program.symbols_size();
    if (numSymbols > 64)
      return Status::invalidInput("it has " + std::to_string(numSymbols) +
                                  " symbols");
    std::unordered_set<std::string> names;
    for (const std::string &symbol : program.symbols()) {
      LLM_RETURN_IF_ERROR(verifyName(symbol));
      if (!names.insert(symbol).second)
        return Status::invalidInput("symbol " + quoted(symbol) +
                                    " is declared twice");
    }
    bool needsArena = false;
    for (int i = 0; i < program.buffers_size(); ++i) {
      const Buffer &buffer = program.buffers(i);
      LLM_RETURN_IF_ERROR(
          this->buffer(buffer, numSymbols)
              .withContext(numbered("buffer", i, buffer.name())));
      needsArena |= buffer.lifetime() == Buffer::TRANSIENT;
    }
    if (needsArena || program.arena_bytes().nodes_size() > 0)
      LLM_RETURN_IF_ERROR(
          verifyExpr(program.arena_bytes(), numSymbols).withContext("arena"));
    for (int i = 0; i < program.kernels_size(); ++i) {
      const Kernel &kernel = program.kernels(i);
      LLM_RETURN_IF_ERROR(
          this->kernel(kernel, program)
              .withContext(numbered("kernel", i, kernel.name())));
    }
    if (program.dispatches_size() > 0 && program.dispatches(0).concurrent())
      return Status::invalidInput(
          "dispatch 0 is concurrent, but there is none before it");
    for (int i = 0; i < program.dispatches_size(); ++i)
      LLM_RETURN_IF_ERROR(dispatch(program.dispatches(i), program)
                              .withContext(numbered("dispatch", i, "")));
    return Status::success();
  }

  Status buffer(const Buffer &buffer, int numSymbols) {
    LLM_RETURN_IF_ERROR(
        verifyName(buffer.name(), buffer.lifetime() != Buffer::IO));
    if (elementBits(buffer.element_type()) == 0)
      return Status::unsupported("its element type is not known");
    LLM_RETURN_IF_ERROR(verifyExpr(buffer.elements(), numSymbols));
    switch (buffer.lifetime()) {
    case Buffer::TRANSIENT:
      return verifyExpr(buffer.arena_offset(), numSymbols);
    case Buffer::CONSTANT:
      return verifyIndex("weight", buffer.weight(), manifest.weights_size());
    case Buffer::STATE: {
      LLM_RETURN_IF_ERROR(verifyIndex("cache group", buffer.group(),
                                      manifest.cache_groups_size()));
      const CacheGroup &group =
          manifest.cache_groups(static_cast<int>(buffer.group()));
      LLM_RETURN_IF_ERROR(
          verifyIndex("plane", buffer.plane(), group.planes_size()));
      LLM_RETURN_IF_ERROR(verifyIndex("layer", buffer.layer(),
                                      static_cast<int>(group.num_layers())));
      if (group.planes(static_cast<int>(buffer.plane())).element_type() !=
          buffer.element_type())
        return Status::invalidInput("its element type is not its plane's");
      return Status::success();
    }
    case Buffer::IO:
      return Status::success();
    default:
      return Status::unsupported("its lifetime is not known");
    }
  }

  Status code(uint32_t index, std::string_view target) {
    LLM_RETURN_IF_ERROR(
        verifyIndex("payload", index, manifest.payloads_size()));
    const Payload &payload = manifest.payloads(static_cast<int>(index));
    if (payload.kind() != Payload::CODE)
      return Status::invalidInput("payload " + std::to_string(index) +
                                  " is not code");
    if (!target.empty() && payload.target() != target)
      return Status::invalidInput("code for " + quoted(payload.target()) +
                                  " in a program for " + quoted(target));
    return Status::success();
  }

  Status kernel(const Kernel &kernel, const Program &program) {
    LLM_RETURN_IF_ERROR(verifyName(kernel.name()));
    LLM_RETURN_IF_ERROR(verifyName(kernel.family(), true));
    if (kernel.variants_size() == 0)
      return Status::invalidInput("it has no variant");
    for (const Variant &variant : kernel.variants()) {
      LLM_RETURN_IF_ERROR(verifyName(variant.entry()));
      LLM_RETURN_IF_ERROR(code(variant.code(), program.target())
                              .withContext(quoted(variant.entry())));
      for (const Range &range : variant.ranges()) {
        LLM_RETURN_IF_ERROR(verifyIndex("range over symbol", range.symbol(),
                                        program.symbols_size()));
        if (range.low() < 0 || range.high() < range.low())
          return Status::invalidInput(quoted(variant.entry()) +
                                      ": an empty range");
      }
    }
    return Status::success();
  }

  Status dispatch(const Dispatch &dispatch, const Program &program) {
    LLM_RETURN_IF_ERROR(
        verifyIndex("kernel", dispatch.kernel(), program.kernels_size()));
    for (uint32_t buffer : dispatch.buffers())
      LLM_RETURN_IF_ERROR(
          verifyIndex("buffer", buffer, program.buffers_size()));
    int numBuffers = dispatch.buffers_size();
    if (dispatch.num_reads() >= static_cast<uint32_t>(numBuffers))
      return Status::invalidInput(
          "it reads " + std::to_string(dispatch.num_reads()) + " of " +
          std::to_string(numBuffers) + " buffers and writes none");
    for (int i = static_cast<int>(dispatch.num_reads()); i < numBuffers; ++i)
      if (program.buffers(static_cast<int>(dispatch.buffers(i))).lifetime() ==
          Buffer::CONSTANT)
        return Status::invalidInput("it writes a constant");
    for (const Expr &size : dispatch.sizes())
      LLM_RETURN_IF_ERROR(verifyExpr(size, program.symbols_size()));
    LLM_RETURN_IF_ERROR(verifyExpr(dispatch.grid(), program.symbols_size())
                            .withContext("grid"));
    return verifyName(dispatch.location(), true);
  }

  Status hostFunction(const HostFunction &function) {
    LLM_RETURN_IF_ERROR(verifyName(function.name()));
    LLM_RETURN_IF_ERROR(verifyName(function.entry()));
    LLM_RETURN_IF_ERROR(code(function.code(), ""));
    for (const auto *list : {&function.inputs(), &function.outputs()}) {
      std::unordered_set<std::string> names;
      for (const TensorInfo &tensor : *list) {
        LLM_RETURN_IF_ERROR(
            this->tensor(tensor).withContext(quoted(tensor.name())));
        if (!names.insert(tensor.name()).second)
          return Status::invalidInput("the name " + quoted(tensor.name()) +
                                      " is used twice");
      }
    }
    for (uint32_t weight : function.constants())
      LLM_RETURN_IF_ERROR(
          verifyIndex("weight", weight, manifest.weights_size()));
    return Status::success();
  }

  Status tensor(const TensorInfo &tensor) {
    LLM_RETURN_IF_ERROR(verifyName(tensor.name()));
    if (elementBits(tensor.element_type()) == 0)
      return Status::unsupported("its element type is not known");
    if (tensor.dims_size() > maxRank)
      return Status::invalidInput("it has too many dimensions");
    for (const Dim &dim : tensor.dims()) {
      if (dim.size() < -1)
        return Status::invalidInput("a dimension is negative");
      LLM_RETURN_IF_ERROR(verifyName(dim.symbol(), true));
    }
    return Status::success();
  }

  Status iterations() {
    for (const Iteration &iteration : manifest.iterations()) {
      std::string where = "iteration " + quoted(iteration.name());
      LLM_RETURN_IF_ERROR(verifyName(iteration.name()).withContext(where));
      for (const Iteration::Call &call : iteration.calls()) {
        if (call.kind() < Iteration::Call::PROGRAM ||
            call.kind() > Iteration::Call::ACCEPT)
          return Status::unsupported(where + ": a call's kind " +
                                     std::to_string(call.kind()) +
                                     " is not known");
        if (call.kind() == Iteration::Call::PROGRAM)
          LLM_RETURN_IF_ERROR(
              verifyIndex("program", call.program(), manifest.programs_size())
                  .withContext(where));
      }
      LLM_RETURN_IF_ERROR(verifyDrafts(manifest, iteration).withContext(where));
    }
    return Status::success();
  }

  Status tokenizer() {
    if (!manifest.has_tokenizer() || manifest.tokenizer().kind().empty())
      return Status::success();
    const TokenizerInfo &info = manifest.tokenizer();
    LLM_RETURN_IF_ERROR(verifyName(info.kind()));
    LLM_RETURN_IF_ERROR(
        verifyIndex("payload", info.payload(), manifest.payloads_size()));
    if (manifest.payloads(static_cast<int>(info.payload())).kind() !=
        Payload::TOKENIZER)
      return Status::invalidInput("its payload is not a tokenizer");
    return Status::success();
  }

  Status generation() {
    const GenerationDefaults &defaults = manifest.generation();
    uint32_t vocabulary = manifest.vocabulary_size();
    if (vocabulary > (1u << 26))
      return Status::invalidInput("a vocabulary of " +
                                  std::to_string(vocabulary));
    if (defaults.max_context() > maxContext)
      return Status::invalidInput("a context of " +
                                  std::to_string(defaults.max_context()));
    if (manifest.decoder()) {
      if (vocabulary == 0)
        return Status::invalidInput("a decoder without a vocabulary");
      if (defaults.max_context() == 0)
        return Status::invalidInput("a decoder without a context");
      if (manifest.programs_size() == 0)
        return Status::invalidInput("a decoder without a program");
      for (int32_t id : defaults.eos_ids())
        if (id < 0 || static_cast<uint32_t>(id) >= vocabulary)
          return Status::invalidInput("end-of-sequence id " +
                                      std::to_string(id) +
                                      " is not in the vocabulary");
      if (defaults.bos_id() < -1 ||
          defaults.bos_id() >= static_cast<int64_t>(vocabulary))
        return Status::invalidInput("begin-of-sequence id " +
                                    std::to_string(defaults.bos_id()) +
                                    " is not in the vocabulary");
    }
    for (float value : {defaults.temperature(), defaults.top_p(),
                        defaults.repetition_penalty()})
      if (!std::isfinite(value) || value < 0)
        return Status::invalidInput("a suggested parameter is not a "
                                    "nonnegative number");
    return Status::success();
  }

  Status certificate() {
    // Over T, S, R, P, B, C in this order.
    const Certificate &certificate = manifest.certificate();
    if (certificate.arena_bytes().nodes_size() > 0)
      LLM_RETURN_IF_ERROR(verifyExpr(certificate.arena_bytes(), 6));
    for (uint64_t value :
         {certificate.weights_bytes(), certificate.kv_bytes_per_slot(),
          certificate.fixed_bytes(), certificate.bytes_per_vocabulary_row()})
      if (value > (uint64_t(1) << 56))
        return Status::invalidInput("a size is too large");
    return Status::success();
  }

  const Manifest &manifest;
  uint64_t fileSize;
};

} // namespace

Status verifyManifest(const artifact::Manifest &manifest, uint64_t fileSize) {
  return Verifier(manifest, fileSize).run();
}

} // namespace llm::runtime
