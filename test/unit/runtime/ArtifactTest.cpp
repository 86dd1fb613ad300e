//===- ArtifactTest.cpp - The reader refuses what is not whole ------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "llm/ABI/artifact.h"
#include "ToyModel.h"
#include "runtime/artifact/Artifact.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <xxhash.h>

using namespace llm;
using namespace llm::runtime;
using namespace llm::test;
using artifact::Manifest;

namespace {

/// Bytes at an address that is a multiple of 64.
class Aligned {
public:
  explicit Aligned(const std::string &bytes)
      : memory(bytes.size() + 64), length(bytes.size()) {
    auto address = reinterpret_cast<uintptr_t>(memory.data());
    start = memory.data() + (64 - address % 64) % 64;
    std::memcpy(start, bytes.data(), length);
  }
  std::span<std::byte> bytes() { return {start, length}; }

private:
  std::vector<std::byte> memory;
  size_t length;
  std::byte *start;
};

Status read(const std::string &bytes) {
  Aligned aligned(bytes);
  auto artifact = Artifact::fromBytes(aligned.bytes());
  return artifact ? Status::success() : artifact.takeStatus();
}

std::string withManifest(const std::function<void(Manifest &)> &change,
                         const ToyOptions &options = {}) {
  std::vector<std::string> contents;
  Manifest manifest = toyManifest(options, contents);
  change(manifest);
  return writeArtifact(manifest, contents);
}

TEST(Artifact, ReadsAWholeOne) {
  std::string bytes = toyArtifact();
  Aligned aligned(bytes);
  auto artifact = Artifact::fromBytes(aligned.bytes());
  ASSERT_TRUE(artifact) << artifact.status().message();
  EXPECT_EQ((*artifact)->manifest().programs_size(), 1);
  EXPECT_EQ((*artifact)->weight(1).size(), sizeof(float));
  float factor;
  std::memcpy(&factor, (*artifact)->weight(1).data(), sizeof(factor));
  EXPECT_EQ(factor, 2.5f);
}

TEST(Artifact, RefusesEveryTruncation) {
  std::string bytes = toyArtifact();
  std::set<size_t> lengths;
  for (size_t i = 0; i < 4096; ++i)
    lengths.insert(i);
  Manifest manifest;
  llm_artifact_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  ASSERT_TRUE(manifest.ParseFromArray(bytes.data() + sizeof(header),
                                      static_cast<int>(header.manifest_size)));
  for (const artifact::Payload &payload : manifest.payloads())
    for (size_t edge : {payload.offset(), payload.offset() + payload.size()})
      for (int64_t delta : {-64, -1, 0, 1})
        if (edge + static_cast<size_t>(delta) < bytes.size())
          lengths.insert(edge + static_cast<size_t>(delta));
  lengths.insert(bytes.size() - 1);
  for (size_t length : lengths) {
    Status status = read(bytes.substr(0, length));
    ASSERT_FALSE(status) << "of " << length << " bytes";
    // From a whole header on, the message says so.
    if (length >= sizeof(llm_artifact_header)) {
      EXPECT_NE(status.message().find("truncated"), std::string::npos)
          << status.message();
    }
  }
  EXPECT_FALSE(read(bytes + '\0'));
}

TEST(Artifact, RefusesFlippedBits) {
  std::string bytes = toyArtifact();
  Aligned aligned(bytes);
  std::span<std::byte> data = aligned.bytes();
  auto refused = [&](size_t i, int bit) {
    data[i] ^= std::byte(1 << bit);
    auto artifact = Artifact::fromBytes(data);
    data[i] ^= std::byte(1 << bit);
    return !artifact;
  };
  // All of the header; then bytes everywhere: manifest, payloads, gaps.
  for (size_t i = 0; i < sizeof(llm_artifact_header); ++i)
    for (int bit = 0; bit < 8; ++bit)
      ASSERT_TRUE(refused(i, bit)) << "byte " << i << " bit " << bit;
  for (size_t i = sizeof(llm_artifact_header); i < 2500; i += 3)
    ASSERT_TRUE(refused(i, static_cast<int>(i % 8))) << "byte " << i;
  for (size_t i = 2500; i < data.size(); i += 13007)
    ASSERT_TRUE(refused(i, static_cast<int>(i % 8))) << "byte " << i;
  ASSERT_TRUE(refused(data.size() - 1, 0));
  ASSERT_TRUE(Artifact::fromBytes(data));
}

TEST(Artifact, RefusesSwappedSections) {
  ToyOptions options;
  options.impossibleVariant = true; // two code payloads of equal size
  std::vector<std::string> contents;
  Manifest manifest = toyManifest(options, contents);
  contents[3][100] = static_cast<char>(contents[3][100] ^ 1);
  std::string bytes = writeArtifact(manifest, contents);
  ASSERT_TRUE(read(bytes));
  llm_artifact_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  ASSERT_TRUE(manifest.ParseFromArray(bytes.data() + sizeof(header),
                                      static_cast<int>(header.manifest_size)));
  const artifact::Payload &a = manifest.payloads(0), &b = manifest.payloads(3);
  std::string swapped = bytes;
  swapped.replace(a.offset(), a.size(), contents[3]);
  swapped.replace(b.offset(), b.size(), contents[0]);
  Status status = read(swapped);
  ASSERT_FALSE(status);
  EXPECT_NE(status.message().find("checksum"), std::string::npos);
}

TEST(Artifact, NamesBothVersions) {
  std::string bytes = toyArtifact();
  bytes[8] = 7;
  Status damaged = read(bytes);
  EXPECT_NE(damaged.message().find("checksum is wrong as well"),
            std::string::npos);
  llm_artifact_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.header_checksum = XXH3_64bits(&header, sizeof(header) - 8);
  std::memcpy(bytes.data(), &header, sizeof(header));
  Status status = read(bytes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.message().find("checksum"), std::string::npos);
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_NE(status.message().find("version 7"), std::string::npos);
  EXPECT_NE(status.message().find("version 2"), std::string::npos);
  EXPECT_NE(status.message().find("compile the model again"),
            std::string::npos);
  for (bool step : {false, true}) {
    status = read(withManifest(
        [&](Manifest &m) { step ? m.set_step_abi(9) : m.set_kernel_abi(9); }));
    ASSERT_FALSE(status);
    EXPECT_NE(status.message().find("version 9"), std::string::npos);
    EXPECT_NE(status.message().find("version 1"), std::string::npos);
  }
}

TEST(Artifact, NamesTheFile) {
  auto missing = Artifact::open("/nonexistent/model.llmx");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.status().message().find("/nonexistent/model.llmx"),
            std::string::npos);
  TemporaryFile other("this is text, and long enough for a header of 64 bytes; "
                      "it is not an artifact");
  auto wrong = Artifact::open(other.path());
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.status().message().find(other.path()), std::string::npos);
  EXPECT_NE(wrong.status().message().find("not an .llmx"), std::string::npos);
}

class ArtifactThreads : public testing::TestWithParam<int> {};

TEST_P(ArtifactThreads, LetTheRestBeReadWhileWeightsAre) {
  int threads = GetParam();
  std::string bytes = toyArtifact();
  TemporaryFile whole(bytes);
  std::string code;
  int calls = 0;
  auto meanwhile = [&](const Artifact &artifact) {
    ++calls;
    code = artifact.manifest().payloads(0).name();
    EXPECT_FALSE(artifact.payload(0).empty());
  };
  auto artifact = Artifact::open(whole.path(), threads, meanwhile);
  ASSERT_TRUE(artifact) << artifact.status().message();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(code, (*artifact)->manifest().payloads(0).name());

  // What is damaged is refused, whatever was made of the rest.
  for (int payload : {0, 1}) {
    std::string damaged = bytes;
    damaged[(*artifact)->manifest().payloads(payload).offset()] ^= 1;
    TemporaryFile file(damaged);
    calls = 0;
    auto refused = Artifact::open(file.path(), threads, meanwhile);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.status().message().find("checksum"), std::string::npos);
    EXPECT_EQ(calls, payload); // the weights are payload 1
  }
  auto thrown = Artifact::open(
      whole.path(), threads, [](const Artifact &) { throw std::bad_alloc(); });
  ASSERT_FALSE(thrown);
  EXPECT_NE(thrown.status().message().find("memory"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Threads, ArtifactThreads, testing::Values(0, 1, 2, 9));

/// An artifact with weights of a few huge pages and a bit: `content` behind the
/// toy model's own.
std::string largeArtifact(std::string &content) {
  std::vector<std::string> contents;
  Manifest manifest = toyManifest({}, contents);
  uint32_t state = 1;
  content.resize((9u << 20) + 4242);
  for (char &byte : content)
    byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  artifact::Payload *payload = manifest.add_payloads();
  payload->set_kind(artifact::Payload::WEIGHTS);
  payload->set_name("more");
  artifact::Weight *weight = manifest.add_weights();
  weight->set_name("large");
  weight->set_payload(static_cast<uint32_t>(contents.size()));
  weight->set_size(content.size());
  weight->set_element_type(artifact::U8);
  weight->add_logical_shape(static_cast<int64_t>(content.size()));
  contents.push_back(content);
  return writeArtifact(manifest, contents);
}

TEST_P(ArtifactThreads, RefuseEveryDamagedBlock) {
  std::string content, bytes = largeArtifact(content);
  {
    TemporaryFile file(bytes);
    auto artifact = Artifact::open(file.path(), GetParam());
    ASSERT_TRUE(artifact) << artifact.status().message();
  }
  size_t start = bytes.size() - content.size();
  for (size_t at = 0; at < content.size(); at += LLM_CHECKSUM_BLOCK) {
    std::string damaged = bytes;
    damaged[start + at] ^= 1;
    TemporaryFile file(damaged);
    auto refused = Artifact::open(file.path(), GetParam());
    ASSERT_FALSE(refused) << at;
    EXPECT_NE(refused.status().message().find("checksum of payload 'more'"),
              std::string::npos)
        << refused.status().message();
  }
  // Blocks in another order.
  std::string swapped = bytes;
  std::swap_ranges(swapped.begin() + ptrdiff_t(start),
                   swapped.begin() + ptrdiff_t(start + LLM_CHECKSUM_BLOCK),
                   swapped.begin() + ptrdiff_t(start + LLM_CHECKSUM_BLOCK));
  TemporaryFile file(swapped);
  EXPECT_FALSE(Artifact::open(file.path(), GetParam()));
}

/// Weights keep their addresses and bytes while they are copied, also for a
/// thread that reads them all the time.
TEST(Artifact, SettlesWeightsInPlace) {
  std::string content;
  TemporaryFile file(largeArtifact(content));
  auto opened = Artifact::open(file.path());
  ASSERT_TRUE(opened) << opened.status().message();
  const Artifact &artifact = **opened;
  auto index = static_cast<uint32_t>(artifact.manifest().weights_size()) - 1;
  std::span<const std::byte> weight = artifact.weight(index);
  ASSERT_EQ(weight.size(), content.size());
  auto same = [&] {
    return std::memcmp(weight.data(), content.data(), content.size()) == 0;
  };
  EXPECT_TRUE(same());
  std::atomic<bool> done{false};
  std::atomic<int> read{0};
  bool good = true;
  std::thread reader([&] {
    do {
      good &= same();
      ++read;
    } while (!done);
  });
  while (read == 0)
    std::this_thread::yield();
  int calls = 1;
  while (artifact.settle(0.25, 2))
    ++calls;
  done = true;
  reader.join();
  EXPECT_TRUE(good);
  EXPECT_TRUE(same());
  EXPECT_EQ(artifact.weight(index).data(), weight.data());
  EXPECT_LE(calls, 4);
  EXPECT_FALSE(artifact.settle(1, 1));
}

/// Makes the iteration one that drafts, and returns the draft.
artifact::Draft *drafting(Manifest &m) {
  using Call = artifact::Iteration::Call;
  artifact::Iteration *iteration = m.mutable_iterations(0);
  iteration->clear_calls();
  for (Call::Kind kind : {Call::DRAFT, Call::PROGRAM, Call::ACCEPT})
    iteration->add_calls()->set_kind(kind);
  artifact::Draft *draft = iteration->mutable_calls(0)->mutable_draft();
  draft->set_lookup(3);
  draft->set_tokens(2);
  for (uint32_t cost : {1000, 1100, 1200})
    draft->add_costs(cost);
  return draft;
}

struct Corruption {
  const char *name;
  std::function<void(Manifest &)> change;
  const char *message;
};

artifact::Program *program(Manifest &m) { return m.mutable_programs(0); }

// Everything that a manifest with right checksums can still say wrongly.
const Corruption corruptions[] = {
    {"PayloadKind",
     [](Manifest &m) {
       m.mutable_payloads(0)->set_kind(artifact::Payload::UNKNOWN);
     },
     "kind"},
    {"CodeWithoutTarget",
     [](Manifest &m) { m.mutable_payloads(0)->clear_target(); },
     "without a target"},
    {"WeightPayload",
     [](Manifest &m) { m.mutable_weights(0)->set_payload(99); },
     "payload 99 of 2"},
    {"WeightInCode", [](Manifest &m) { m.mutable_weights(0)->set_payload(0); },
     "does not hold weights"},
    {"WeightSize",
     [](Manifest &m) { m.mutable_weights(0)->set_size(1u << 30); },
     "does not lie in its payload"},
    {"WeightOffsetWraps",
     [](Manifest &m) {
       m.mutable_weights(0)->set_offset(UINT64_MAX - 63);
       m.mutable_weights(0)->set_size(64);
     },
     "does not lie in its payload"},
    {"WeightAlignment",
     [](Manifest &m) {
       m.mutable_weights(0)->set_offset(4);
       m.mutable_weights(0)->set_size(4);
     },
     "multiple of 64"},
    {"WeightType",
     [](Manifest &m) {
       m.mutable_weights(0)->set_element_type(
           static_cast<artifact::ElementType>(77));
     },
     "element type"},
    {"WeightShape",
     [](Manifest &m) { m.mutable_weights(0)->add_logical_shape(-4); },
     "negative"},
    {"WeightShapeOverflows",
     [](Manifest &m) {
       for (int i = 0; i < 3; ++i)
         m.mutable_weights(0)->add_logical_shape(int64_t(1) << 40);
     },
     "too large"},
    {"WeightName", [](Manifest &m) { m.mutable_weights(0)->clear_name(); },
     "name is empty"},
    {"ControlCharacter",
     [](Manifest &m) { m.mutable_weights(0)->set_name("a\x1b[2J"); },
     "control character"},
    {"GroupWithoutPlane",
     [](Manifest &m) { m.mutable_cache_groups(0)->clear_planes(); },
     "no plane"},
    {"GroupWithoutLayer",
     [](Manifest &m) { m.mutable_cache_groups(0)->set_num_layers(0); },
     "layers"},
    {"PlaneTooLarge",
     [](Manifest &m) {
       m.mutable_cache_groups(0)->mutable_planes(0)->add_shape(int64_t(1)
                                                               << 40);
     },
     "too large"},
    {"PlaneEmpty",
     [](Manifest &m) {
       m.mutable_cache_groups(0)->mutable_planes(0)->add_shape(0);
     },
     "no elements"},
    {"PageSize",
     [](Manifest &m) { m.mutable_cache_groups(0)->set_page_size(1u << 31); },
     "pages are too large"},
    {"SymbolTwice", [](Manifest &m) { program(m)->add_symbols("T"); },
     "declared twice"},
    {"ProgramTwice", [](Manifest &m) { *m.add_programs() = m.programs(0); },
     "used twice"},
    {"BufferLifetime",
     [](Manifest &m) {
       program(m)->mutable_buffers(0)->set_lifetime(
           static_cast<artifact::Buffer::Lifetime>(9));
     },
     "lifetime"},
    {"BufferSymbol",
     [](Manifest &m) {
       program(m)
           ->mutable_buffers(0)
           ->mutable_elements()
           ->mutable_nodes(0)
           ->set_value(6);
     },
     "symbol 6 of 6"},
    {"BufferWeight",
     [](Manifest &m) {
       for (artifact::Buffer &buffer : *program(m)->mutable_buffers())
         buffer.set_weight(5);
     },
     "weight 5 of 2"},
    {"StateLayer",
     [](Manifest &m) {
       for (artifact::Buffer &buffer : *program(m)->mutable_buffers())
         buffer.set_layer(1);
     },
     "layer 1 of 1"},
    {"StatePlane",
     [](Manifest &m) {
       for (artifact::Buffer &buffer : *program(m)->mutable_buffers())
         buffer.set_plane(1);
     },
     "plane 1 of 1"},
    {"StateGroup",
     [](Manifest &m) {
       for (artifact::Buffer &buffer : *program(m)->mutable_buffers())
         buffer.set_group(3);
     },
     "cache group 3 of 1"},
    {"StateType",
     [](Manifest &m) {
       m.mutable_cache_groups(0)->mutable_planes(0)->set_element_type(
           artifact::F32);
     },
     "plane's"},
    {"NoArena", [](Manifest &m) { program(m)->clear_arena_bytes(); }, "arena"},
    {"FirstConcurrent",
     [](Manifest &m) {
       program(m)->mutable_dispatches(0)->set_concurrent(true);
     },
     "there is none before it"},
    {"NoVariant",
     [](Manifest &m) { program(m)->mutable_kernels(0)->clear_variants(); },
     "no variant"},
    {"VariantCode",
     [](Manifest &m) {
       program(m)->mutable_kernels(0)->mutable_variants(0)->set_code(7);
     },
     "payload 7 of 2"},
    {"VariantInWeights",
     [](Manifest &m) {
       program(m)->mutable_kernels(0)->mutable_variants(0)->set_code(1);
     },
     "is not code"},
    {"VariantTarget",
     [](Manifest &m) { m.mutable_payloads(0)->set_target("cuda"); },
     "code for 'cuda'"},
    {"RangeSymbol",
     [](Manifest &m) {
       program(m)
           ->mutable_kernels(3)
           ->mutable_variants(0)
           ->mutable_ranges(0)
           ->set_symbol(17);
     },
     "symbol 17"},
    {"RangeEmpty",
     [](Manifest &m) {
       program(m)
           ->mutable_kernels(3)
           ->mutable_variants(0)
           ->mutable_ranges(0)
           ->set_high(0);
     },
     "empty range"},
    {"DispatchKernel",
     [](Manifest &m) { program(m)->mutable_dispatches(0)->set_kernel(4); },
     "kernel 4 of 4"},
    {"DispatchBuffer",
     [](Manifest &m) {
       program(m)->mutable_dispatches(0)->set_buffers(0, 1000);
     },
     "buffer 1000"},
    {"DispatchWritesNothing",
     [](Manifest &m) { program(m)->mutable_dispatches(0)->set_num_reads(6); },
     "writes none"},
    {"DispatchWritesConstant",
     [](Manifest &m) { program(m)->mutable_dispatches(3)->set_num_reads(1); },
     "writes a constant"},
    {"DispatchGrid",
     [](Manifest &m) { program(m)->mutable_dispatches(0)->clear_grid(); },
     "grid"},
    {"DispatchSize",
     [](Manifest &m) {
       program(m)->mutable_dispatches(0)->mutable_sizes(0)->add_nodes()->set_op(
           artifact::Expr::ADD);
     },
     "lacks operands"},
    {"FunctionCode",
     [](Manifest &m) { m.mutable_host_functions(0)->set_code(1); },
     "is not code"},
    {"FunctionConstant",
     [](Manifest &m) { m.mutable_host_functions(0)->set_constants(0, 2); },
     "weight 2 of 2"},
    {"FunctionInputTwice",
     [](Manifest &m) {
       *m.mutable_host_functions(0)->add_inputs() =
           m.host_functions(0).inputs(0);
     },
     "used twice"},
    {"FunctionDim",
     [](Manifest &m) {
       m.mutable_host_functions(0)
           ->mutable_inputs(0)
           ->mutable_dims(0)
           ->set_size(-2);
     },
     "dimension is negative"},
    {"IterationProgram",
     [](Manifest &m) {
       m.mutable_iterations(0)->mutable_calls(0)->set_program(1);
     },
     "program 1 of 1"},
    {"IterationKind",
     [](Manifest &m) {
       m.mutable_iterations(0)->mutable_calls(0)->set_kind(
           static_cast<artifact::Iteration::Call::Kind>(5));
     },
     "kind 5"},
    {"DraftLooksNothingUp", [](Manifest &m) { drafting(m)->set_lookup(0); },
     "looks 0 tokens up"},
    {"DraftLooksMuchUp", [](Manifest &m) { drafting(m)->set_lookup(17); },
     "looks 17 tokens up"},
    {"DraftOfNothing", [](Manifest &m) { drafting(m)->set_tokens(0); },
     "a draft of 0 tokens"},
    {"DraftOfMany", [](Manifest &m) { drafting(m)->set_tokens(UINT32_MAX); },
     "a draft of 4294967295 tokens"},
    {"DraftCostMissing",
     [](Manifest &m) { drafting(m)->mutable_costs()->RemoveLast(); },
     "a draft of 2 tokens with 2 costs"},
    {"DraftCostUnit", [](Manifest &m) { drafting(m)->set_costs(0, 1); },
     "costs 1"},
    {"DraftCostsDescend", [](Manifest &m) { drafting(m)->set_costs(2, 1050); },
     "do not ascend"},
    {"DraftCostEndless",
     [](Manifest &m) { drafting(m)->set_costs(2, UINT32_MAX); }, "exceed"},
    {"DraftIsNotAccepted",
     [](Manifest &m) {
       drafting(m);
       m.mutable_iterations(0)->mutable_calls()->RemoveLast();
     },
     "consists of a draft"},
    {"AcceptsNothing",
     [](Manifest &m) {
       m.mutable_iterations(0)->mutable_calls(1)->set_kind(
           artifact::Iteration::Call::ACCEPT);
     },
     "consists of a draft"},
    {"DraftComesLate",
     [](Manifest &m) {
       drafting(m);
       m.mutable_iterations(0)->mutable_calls()->SwapElements(0, 1);
     },
     "consists of a draft"},
    {"DraftIsSampled",
     [](Manifest &m) {
       drafting(m);
       m.mutable_iterations(0)->mutable_calls(2)->set_kind(
           artifact::Iteration::Call::SAMPLE);
     },
     "consists of a draft"},
    {"DraftIsVerifiedOtherwise",
     [](Manifest &m) {
       drafting(m);
       program(m)->set_row_invariant(false);
     },
     "depend on what shares their step"},
    {"DraftCannotBeDropped",
     [](Manifest &m) {
       drafting(m);
       artifact::Plane *plane = m.mutable_cache_groups(0)->add_planes();
       *plane = m.cache_groups(0).planes(0);
       plane->set_name("state");
       plane->set_granularity(artifact::Plane::SEQUENCE);
     },
     "plane 'state', which keeps more than tokens"},
    {"TokenizerPayload",
     [](Manifest &m) {
       m.mutable_tokenizer()->set_kind("x");
       m.mutable_tokenizer()->set_payload(1);
     },
     "not a tokenizer"},
    {"NoVocabulary", [](Manifest &m) { m.set_vocabulary_size(0); },
     "without a vocabulary"},
    {"NoContext",
     [](Manifest &m) { m.mutable_generation()->set_max_context(0); },
     "without a context"},
    {"Context",
     [](Manifest &m) { m.mutable_generation()->set_max_context(1u << 31); },
     "a context of"},
    {"EosId", [](Manifest &m) { m.mutable_generation()->add_eos_ids(101); },
     "not in the vocabulary"},
    {"BosId", [](Manifest &m) { m.mutable_generation()->set_bos_id(-2); },
     "not in the vocabulary"},
    {"DecoderWithoutProgram",
     [](Manifest &m) {
       m.clear_programs();
       m.clear_iterations();
     },
     "without a program"},
    {"CertificateSymbol",
     [](Manifest &m) {
       artifact::Expr::Node *node =
           m.mutable_certificate()->mutable_arena_bytes()->mutable_nodes(0);
       node->set_op(artifact::Expr::SYMBOL);
       node->set_value(6);
     },
     "symbol 6 of 6"},
    {"CertificateSize",
     [](Manifest &m) { m.mutable_certificate()->set_fixed_bytes(UINT64_MAX); },
     "too large"},
    {"PassKL", [](Manifest &m) { m.add_passes()->set_kl(-1.0 / 0.0); }, "KL"},
};

class Corrupted : public testing::TestWithParam<Corruption> {};

TEST_P(Corrupted, IsRefusedByName) {
  ToyOptions options;
  options.hostFunction = true;
  ASSERT_TRUE(read(withManifest([](Manifest &) {}, options)));
  Status status = read(withManifest(GetParam().change, options));
  ASSERT_FALSE(status);
  EXPECT_NE(status.message().find(GetParam().message), std::string::npos)
      << status.message();
}

INSTANTIATE_TEST_SUITE_P(Manifest, Corrupted, testing::ValuesIn(corruptions),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// Rewrites the manifest of a written artifact without laying it out anew.
std::string replaceManifest(std::string bytes,
                            const std::function<void(Manifest &)> &change) {
  llm_artifact_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  Manifest manifest;
  EXPECT_TRUE(manifest.ParseFromArray(bytes.data() + sizeof(header),
                                      static_cast<int>(header.manifest_size)));
  change(manifest);
  std::string head;
  EXPECT_TRUE(manifest.SerializeToString(&head));
  EXPECT_LT(sizeof(header) + head.size(), 4096u);
  bytes.replace(sizeof(header), 4096 - sizeof(header),
                head + std::string(4096 - sizeof(header) - head.size(), '\0'));
  header.manifest_size = head.size();
  std::memcpy(bytes.data(), &header, sizeof(header));
  return fixChecksums(bytes);
}

TEST(Artifact, RefusesPayloadsOutOfPlace) {
  std::string bytes = toyArtifact();
  ASSERT_TRUE(read(replaceManifest(bytes, [](Manifest &) {})));
  auto refusal = [&](const std::function<void(artifact::Payload &)> &change) {
    return read(
               replaceManifest(
                   bytes, [&](Manifest &m) { change(*m.mutable_payloads(0)); }))
        .message();
  };
  using artifact::Payload;
  EXPECT_NE(refusal([](Payload &p) {
              p.set_size(uint64_t(1) << 40);
            }).find("does not lie in the file"),
            std::string::npos);
  EXPECT_NE(refusal([](Payload &p) {
              p.set_offset(UINT64_MAX - 4095);
            }).find("does not lie in the file"),
            std::string::npos);
  EXPECT_NE(refusal([](Payload &p) {
              p.set_offset(p.offset() + 64);
            }).find("multiple of 4096"),
            std::string::npos);
  EXPECT_NE(
      refusal([](Payload &p) { p.set_size(uint64_t(3) << 20); }).find("lie"),
      std::string::npos);
  // Over the manifest itself.
  EXPECT_NE(refusal([](Payload &p) { p.set_offset(0); }).find("overlaps"),
            std::string::npos);
  // A payload that is no longer covered leaves bytes in a gap.
  EXPECT_NE(refusal([](Payload &p) {
              p.set_size(p.size() / 2);
            }).find("between its sections"),
            std::string::npos);
}

} // namespace
