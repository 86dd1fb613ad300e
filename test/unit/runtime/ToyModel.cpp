//===- ToyModel.cpp - An artifact and its meaning, for the tests ------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ToyModel.h"

#include "llm/ABI/artifact.h"
#include "llm/ABI/kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <unistd.h>
#include <xxhash.h>

namespace llm::test {

using namespace artifact;

namespace {

std::string serialize(const Manifest &manifest) {
  std::string bytes;
  manifest.SerializeToString(&bytes);
  return bytes;
}

/// A payload's checksum, by the words of artifact.h.
uint64_t payloadSum(std::string_view bytes) {
  std::vector<uint64_t> blocks;
  for (size_t at = 0; at < bytes.size(); at += LLM_CHECKSUM_BLOCK) {
    std::string_view block = bytes.substr(at, LLM_CHECKSUM_BLOCK);
    blocks.push_back(XXH3_64bits(block.data(), block.size()));
  }
  return XXH3_64bits(blocks.data(), blocks.size() * sizeof(uint64_t));
}

void sealHeader(std::string &bytes, uint64_t manifestSize) {
  llm_artifact_header header = {};
  std::memcpy(header.magic, LLM_ARTIFACT_MAGIC, 8);
  header.version = LLM_ARTIFACT_VERSION;
  header.manifest_size = manifestSize;
  header.manifest_checksum =
      XXH3_64bits(bytes.data() + sizeof(header), manifestSize);
  header.file_size = bytes.size();
  header.header_checksum = XXH3_64bits(&header, sizeof(header) - 8);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Names its parts from the end, as the postfix form has them.
struct ExprBuilder {
  Expr expr;
  ExprBuilder &constant(int64_t value) { return node(Expr::CONSTANT, value); }
  ExprBuilder &symbol(int64_t index) { return node(Expr::SYMBOL, index); }
  ExprBuilder &op(Expr::Op op) { return node(op, 0); }
  ExprBuilder &node(Expr::Op op, int64_t value) {
    Expr::Node *added = expr.add_nodes();
    added->set_op(op);
    added->set_value(value);
    return *this;
  }
};
Expr constant(int64_t value) { return ExprBuilder().constant(value).expr; }
Expr symbol(int64_t index) { return ExprBuilder().symbol(index).expr; }
Expr times(int64_t index, int64_t factor) {
  return ExprBuilder().symbol(index).constant(factor).op(Expr::MUL).expr;
}
/// Bytes of `index` u32, rounded up to 64.
Expr paddedWords(int64_t index) {
  return ExprBuilder()
      .symbol(index)
      .constant(16)
      .op(Expr::CEIL_DIV)
      .constant(64)
      .op(Expr::MUL)
      .expr;
}

enum { T, S, R, P, B, C };

class ToyProgram {
public:
  ToyProgram(Program &program, const ToyOptions &options)
      : program(program), options(options) {}

  void build() {
    program.set_name("toy");
    program.set_target("cpu");
    program.set_row_invariant(true);
    for (const char *name : {"T", "S", "R", "P", "B", "C"})
      program.add_symbols(name);
    uint32_t token = io("token", symbol(T)),
             position = io("position", symbol(T));
    uint32_t role = io("role", symbol(T)), slot = io("slot.0", symbol(T));
    uint32_t seq = io("seq", symbol(T)), lengths = io("kv_len.0", symbol(S));
    uint32_t begins =
        io("q_begin", ExprBuilder().symbol(S).constant(1).op(Expr::ADD).expr);
    uint32_t table = io("block_table.0",
                        ExprBuilder().symbol(S).symbol(B).op(Expr::MUL).expr);
    uint32_t row = io("logit_row", symbol(R));
    uint32_t plane = buffer(Buffer::STATE, "", I32, times(C, 3));
    uint32_t bias =
        buffer(Buffer::CONSTANT, "bias", F32, constant(options.vocabulary));
    uint32_t hash = buffer(Buffer::TRANSIENT, "", U32, symbol(T));
    *program.mutable_buffers(static_cast<int>(hash))->mutable_arena_offset() =
        constant(0);
    uint32_t picked = buffer(Buffer::TRANSIENT, "", U32, symbol(R));
    *program.mutable_buffers(static_cast<int>(picked))->mutable_arena_offset() =
        paddedWords(T);
    uint32_t out =
        buffer(Buffer::IO, "logits", F32, times(R, options.vocabulary));
    *program.mutable_arena_bytes() = ExprBuilder()
                                         .symbol(T)
                                         .constant(16)
                                         .op(Expr::CEIL_DIV)
                                         .symbol(R)
                                         .constant(16)
                                         .op(Expr::CEIL_DIV)
                                         .op(Expr::ADD)
                                         .constant(64)
                                         .op(Expr::MUL)
                                         .expr;

    dispatch("append", {token, position, role, slot, seq}, plane, {symbol(T)},
             symbol(T));
    dispatch("attend", {plane, seq, begins, lengths, table}, hash,
             {symbol(T), symbol(B), constant(options.pageSize)}, symbol(T));
    dispatch("gather", {hash, row}, picked, {symbol(R)}, symbol(R));
    dispatch("logits", {picked, bias}, out,
             {symbol(R), constant(options.vocabulary)},
             constant(options.vocabulary));
    program.mutable_dispatches(1)->set_concurrent(options.concurrent);
    // A kernel whose ranges start at one row: nothing covers R = 0, and nothing
    // has to.
    for (Variant &variant : *program.mutable_kernels(3)->mutable_variants()) {
      Range *range = variant.add_ranges();
      range->set_symbol(R);
      range->set_low(1);
      range->set_high(INT64_MAX);
    }
  }

private:
  uint32_t buffer(Buffer::Lifetime lifetime, const char *name, ElementType type,
                  Expr elements) {
    Buffer *added = program.add_buffers();
    added->set_name(name);
    added->set_lifetime(lifetime);
    added->set_element_type(type);
    *added->mutable_elements() = std::move(elements);
    return static_cast<uint32_t>(program.buffers_size() - 1);
  }
  uint32_t io(const char *name, Expr elements) {
    return buffer(Buffer::IO, name, I32, std::move(elements));
  }

  void dispatch(const char *entry, std::vector<uint32_t> reads, uint32_t write,
                std::vector<Expr> sizes, Expr grid) {
    Kernel *kernel = program.add_kernels();
    kernel->set_name(entry);
    kernel->set_family("test");
    if (options.impossibleVariant || options.onlyImpossible)
      addVariant(*kernel, entry, 3);
    if (!options.onlyImpossible)
      addVariant(*kernel, entry, 0);
    Dispatch *added = program.add_dispatches();
    added->set_kernel(static_cast<uint32_t>(program.kernels_size() - 1));
    for (uint32_t read : reads)
      added->add_buffers(read);
    added->set_num_reads(static_cast<uint32_t>(reads.size()));
    added->add_buffers(write);
    for (Expr &size : sizes)
      *added->add_sizes() = std::move(size);
    *added->mutable_grid() = std::move(grid);
    added->set_location(std::string("node_") + entry);
  }

  void addVariant(Kernel &kernel, const char *entry, uint32_t code) {
    Variant *variant = kernel.add_variants();
    variant->set_entry(entry);
    variant->set_code(code);
  }

  Program &program;
  const ToyOptions &options;
};

std::string readFile(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

float toyBias(uint32_t v) { return static_cast<float>(v % 7) * 0.125f; }

} // namespace

std::string writeArtifact(Manifest manifest,
                          const std::vector<std::string> &contents) {
  // Offsets are varints and change the manifest's size: fixed after room for
  // the largest.
  uint64_t roomForVarints = 64 + 64 * contents.size();
  uint64_t position = alignUp(sizeof(llm_artifact_header) +
                                  serialize(manifest).size() + roomForVarints,
                              4096);
  for (size_t i = 0; i < contents.size(); ++i) {
    Payload &payload = *manifest.mutable_payloads(static_cast<int>(i));
    position = alignUp(position, payload.kind() == Payload::WEIGHTS
                                     ? uint64_t(LLM_PAYLOAD_ALIGNMENT)
                                     : 4096);
    payload.set_offset(position);
    payload.set_size(contents[i].size());
    payload.set_checksum(payloadSum(contents[i]));
    position += contents[i].size();
  }
  std::string head = serialize(manifest);
  std::string bytes(position, '\0');
  std::copy(head.begin(), head.end(),
            bytes.begin() + sizeof(llm_artifact_header));
  for (size_t i = 0; i < contents.size(); ++i)
    std::copy(contents[i].begin(), contents[i].end(),
              bytes.begin() +
                  static_cast<ptrdiff_t>(
                      manifest.payloads(static_cast<int>(i)).offset()));
  sealHeader(bytes, head.size());
  return bytes;
}

std::string fixChecksums(std::string bytes) {
  llm_artifact_header header;
  if (bytes.size() < sizeof(header))
    return bytes;
  std::memcpy(&header, bytes.data(), sizeof(header));
  uint64_t room = bytes.size() - sizeof(header);
  uint64_t size = std::min(header.manifest_size, room);
  Manifest manifest;
  if (manifest.ParseFromArray(bytes.data() + sizeof(header),
                              static_cast<int>(size))) {
    bool changed = false;
    for (Payload &payload : *manifest.mutable_payloads())
      if (payload.size() <= bytes.size() &&
          payload.offset() <= bytes.size() - payload.size()) {
        uint64_t sum = payloadSum(
            std::string_view(bytes).substr(payload.offset(), payload.size()));
        changed |= sum != payload.checksum();
        payload.set_checksum(sum);
      }
    std::string head = serialize(manifest);
    if (changed && head.size() <= room) {
      std::copy(head.begin(), head.end(), bytes.begin() + sizeof(header));
      if (head.size() < size)
        std::fill(bytes.begin() +
                      static_cast<ptrdiff_t>(sizeof(header) + head.size()),
                  bytes.begin() + static_cast<ptrdiff_t>(sizeof(header) + size),
                  '\0');
      size = head.size();
    }
  }
  sealHeader(bytes, size);
  return bytes;
}

Manifest toyManifest(const ToyOptions &options,
                     std::vector<std::string> &contents) {
  Manifest manifest;
  manifest.set_step_abi(LLM_STEP_ABI_VERSION);
  manifest.set_kernel_abi(LLM_KERNEL_ABI_VERSION);
  manifest.set_compiler("test");
  manifest.set_decoder(true);
  manifest.set_vocabulary_size(options.vocabulary);
  manifest.mutable_source()->set_path("toy.onnx");
  manifest.mutable_generation()->set_bos_id(1);
  manifest.mutable_generation()->set_max_context(options.context);
  contents.clear();
  auto add = [&](Payload::Kind kind, const char *name, std::string bytes) {
    Payload *payload = manifest.add_payloads();
    payload->set_kind(kind);
    payload->set_name(name);
    contents.push_back(std::move(bytes));
    return payload;
  };
  Payload *code = add(Payload::CODE, "kernels", readFile(LLM_TEST_KERNELS));
  code->set_target("cpu");
  code->set_arch("x86-64");

  std::string weights(options.vocabulary * sizeof(float), '\0');
  for (uint32_t v = 0; v < options.vocabulary; ++v) {
    float value = toyBias(v);
    std::memcpy(weights.data() + v * sizeof(float), &value, sizeof(value));
  }
  weights.resize(alignUp(weights.size(), 64));
  uint64_t factorOffset = weights.size();
  float factor = 2.5f;
  weights.append(reinterpret_cast<const char *>(&factor), sizeof(factor));
  add(Payload::WEIGHTS, "weights", weights);
  Weight *bias = manifest.add_weights();
  bias->set_name("bias");
  bias->set_payload(1);
  bias->set_size(options.vocabulary * sizeof(float));
  bias->set_layout("rows");
  bias->set_element_type(F32);
  bias->add_logical_shape(options.vocabulary);
  Weight *scale = manifest.add_weights();
  scale->set_name("factor");
  scale->set_payload(1);
  scale->set_offset(factorOffset);
  scale->set_size(sizeof(float));
  scale->set_layout("rows");
  scale->set_element_type(F32);

  CacheGroup *group = manifest.add_cache_groups();
  group->set_num_layers(1);
  group->set_kv_heads(1);
  group->set_page_size(options.pageSize);
  Plane *plane = group->add_planes();
  plane->set_name("k");
  plane->set_element_type(I32);
  plane->add_shape(3);

  ToyProgram(*manifest.add_programs(), options).build();
  Iteration *iteration = manifest.add_iterations();
  iteration->set_name("generate");
  if (options.lookup > 0) {
    Iteration::Call *call = iteration->add_calls();
    call->set_kind(Iteration::Call::DRAFT);
    call->mutable_draft()->set_lookup(options.lookup);
    call->mutable_draft()->set_tokens(options.draftTokens);
    for (uint32_t i = 0; i <= options.draftTokens; ++i)
      call->mutable_draft()->add_costs(LLM_DRAFT_COST_UNIT + i * 50);
  }
  iteration->add_calls()->set_kind(Iteration::Call::PROGRAM);
  iteration->add_calls()->set_kind(
      options.lookup > 0 ? Iteration::Call::ACCEPT : Iteration::Call::SAMPLE);

  Certificate *certificate = manifest.mutable_certificate();
  certificate->set_weights_bytes(weights.size());
  *certificate->mutable_arena_bytes() = manifest.programs(0).arena_bytes();
  certificate->set_kv_bytes_per_slot(12);
  certificate->set_fixed_bytes(16 << 20);
  certificate->set_bytes_per_vocabulary_row(4 * options.vocabulary);

  if (options.impossibleVariant || options.onlyImpossible) {
    add(Payload::TOKENIZER, "unused", "x");
    Payload *other =
        add(Payload::CODE, "kernels-impossible", readFile(LLM_TEST_KERNELS));
    other->set_target("cpu");
    other->set_arch("quantum");
    other->add_features("sse2");
    other->add_features("entanglement");
  }
  if (options.hostFunction) {
    HostFunction *function = manifest.add_host_functions();
    function->set_name("main");
    function->set_entry("scale");
    function->set_code(0);
    function->add_constants(1);
    for (TensorInfo *tensor :
         {function->add_inputs(), function->add_outputs()}) {
      tensor->set_name(tensor == &function->inputs(0) ? "x" : "y");
      tensor->set_element_type(F32);
      Dim *first = tensor->add_dims();
      first->set_size(-1);
      first->set_symbol("n");
      tensor->add_dims()->set_size(3);
    }
  }
  return manifest;
}

std::string toyArtifact(const ToyOptions &options) {
  std::vector<std::string> contents;
  Manifest manifest = toyManifest(options, contents);
  return writeArtifact(std::move(manifest), contents);
}

std::vector<float> toyLogits(const std::vector<int32_t> &tokens,
                             const std::vector<llm_role> &roles,
                             uint32_t vocabulary) {
  uint32_t hash = 17;
  auto feed = [&](int64_t value) {
    hash = (hash ^ static_cast<uint32_t>(value)) * 16777619u;
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    feed(tokens[i]);
    feed(static_cast<int64_t>(i));
    feed(roles[i]);
  }
  std::vector<float> logits;
  for (uint32_t v = 0; v < vocabulary; ++v) {
    uint32_t h = (hash + v * 2654435761u) * 2246822519u;
    logits.push_back(static_cast<float>(h >> 20) / 512 + toyBias(v));
  }
  return logits;
}

std::vector<int32_t> toyGenerate(const std::vector<int32_t> &prompt,
                                 size_t count, uint32_t vocabulary) {
  std::vector<int32_t> tokens = prompt, generated;
  std::vector<llm_role> roles(prompt.size(), LLM_ROLE_PROMPT);
  for (size_t i = 0; i < count; ++i) {
    std::vector<float> logits = toyLogits(tokens, roles, vocabulary);
    auto best = std::max_element(logits.begin(), logits.end());
    generated.push_back(static_cast<int32_t>(best - logits.begin()));
    tokens.push_back(generated.back());
    roles.push_back(LLM_ROLE_GENERATED);
  }
  return generated;
}

TemporaryFile::TemporaryFile(const std::string &bytes,
                             const std::string &suffix) {
  const char *directory = std::getenv("TMPDIR");
  name = std::string(directory && *directory ? directory : "/tmp") +
         "/llm-test-XXXXXX" + suffix;
  int descriptor = mkstemps(name.data(), static_cast<int>(suffix.size()));
  if (descriptor < 0)
    std::abort();
  close(descriptor);
  std::ofstream(name, std::ios::binary) << bytes;
}

TemporaryFile::~TemporaryFile() { std::remove(name.c_str()); }

} // namespace llm::test
