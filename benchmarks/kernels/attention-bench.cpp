//===- attention-bench.cpp - Speed of attention on a CPU ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attention-bench [MCPU] [FILTER] [THREADS] [rows]: the items of one layer,
// split over threads in equal runs as the thread pool does. The time of a call
// is the CPU time of its slowest thread, so that other processes count little;
// medians. Per step of T tokens, of S sequences, after which the cache of each
// holds `context` slots: GFLOP/s, four per element of a query and slot that it
// sees; GB/s of the cache. Planes lie in blocks where pages are multiples of
// 16, unless `rows` is given.
//
//===----------------------------------------------------------------------===//
#include "benchmarks/kernels/Arguments.h"
#include "test/unit/kernels/Harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <thread>

using namespace llm::test;

static std::string mcpu = "native", filter;
static int threads = 2;
static bool onlyRows = false;

static double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

/// Median over repetitions of the slowest thread's time.
static double measure(const std::function<void(int)> &work) {
  constexpr int kRounds = 400;
  std::vector<std::vector<double>> times(threads);
  auto run = [&](int thread) {
    work(thread);
    double spent = 0;
    for (int i = 0; i < 5 || (i < kRounds && spent < 0.4); ++i) {
      double begin = cpuSeconds();
      work(thread);
      times[thread].push_back(cpuSeconds() - begin);
      spent += times[thread].back();
    }
    std::sort(times[thread].begin(), times[thread].end());
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back(run, t);
  run(0);
  for (std::thread &other : others)
    other.join();
  double slowest = 0;
  for (const std::vector<double> &t : times)
    slowest = std::max(slowest, t[t.size() / 2]);
  return slowest;
}

static std::string entry(const char *name, int64_t value) {
  return std::string(name) + " = " + std::to_string(value) + " : i64, ";
}

namespace {
struct Shape {
  int64_t heads, kvHeads, size;
  std::string cacheType;
};
} // namespace

static int64_t bytesOf(const std::string &type) {
  return type == "f32" ? 4 : type == "f16" || type == "bf16" ? 2 : 1;
}

/// The numbers as the cache holds them, in huge pages as in the runtime.
static uint8_t *makePlane(const Buffer<float> &numbers, int64_t slots,
                          int64_t width, const std::string &type) {
  int64_t bytes = bytesOf(type);
  size_t total = static_cast<size_t>(slots * width * bytes);
  auto *plane = static_cast<uint8_t *>(
      aligned_alloc(size_t(2) << 20, (total >> 21 << 21) + (size_t(2) << 20)));
  madvise(plane, total, MADV_HUGEPAGE);
  for (int64_t i = 0; i < slots * width; ++i) {
    float number = numbers[i % numbers.size()];
    auto half = static_cast<_Float16>(number);
    uint16_t bits = roundToBF16(number);
    if (bytes == 1)
      plane[i] = static_cast<uint8_t>(i * 37 % 120);
    else if (bytes == 4)
      std::memcpy(plane + i * 4, &number, 4);
    else
      std::memcpy(plane + i * 2, type == "f16" ? (void *)&half : &bits, 2);
  }
  return plane;
}

/// `tokens` of each of `sequences`.
static void bench(const Shape &shape, int64_t tokens, int64_t context,
                  int64_t page, int64_t sequences = 1) {
  auto [heads, kvHeads, size, type] = shape;
  bool rows = onlyRows || page % 16;
  std::string name = std::to_string(heads) + "/" + std::to_string(kvHeads) +
                     "x" + std::to_string(size) + " " + type +
                     " T=" + std::to_string(tokens * sequences) +
                     " S=" + std::to_string(sequences) + " context " +
                     std::to_string(context) + " page " + std::to_string(page) +
                     (rows ? " rows" : "");
  if (name.find(filter) == std::string::npos)
    return;
  int64_t tile = std::clamp<int64_t>(96 / (heads / kvHeads), 1, 32);
  int64_t bytes = bytesOf(type), width = kvHeads * size;
  int64_t minTiles = (31 + kvHeads) / kvHeads, split = 8, headGroups = 1;
  for (int64_t groups : {2, 3, 4})
    if (kvHeads % groups == 0 && width / groups * bytes >= 1024)
      headGroups = groups;
  std::string params =
      "{" + entry("heads", heads) + entry("kv_heads", kvHeads) +
      entry("size", size) + entry("value_size", size) + entry("window", 0) +
      entry("page_size", page) + entry("tile", tile) +
      entry("head_groups", headGroups) + entry("split", split) +
      "scale = 0.125 : f64, softcap = 0.0 : f64, cache_type = " + type +
      (rows ? "}" : ", planes = \"blocks\"}");
  static std::map<std::pair<std::string, std::string>,
                  std::unique_ptr<CompiledKernel>>
      compiled;
  auto compile = [&](const char *family) -> const CompiledKernel & {
    std::unique_ptr<CompiledKernel> &kernel = compiled[{family, params}];
    if (!kernel)
      kernel = std::make_unique<CompiledKernel>(family, params, mcpu);
    return *kernel;
  };
  const CompiledKernel &kernel = compile("attention"),
                       &merge = compile("attention_merge");
  int64_t all = tokens * sequences;
  int64_t pages = page ? (context + page - 1) / page : 1,
          slots = sequences * (page ? pages * page : context);
  Buffer<float> q = randomFloats(all * heads * size, 1),
                out(all * heads * size), numbers = randomFloats(99991, 2);
  uint8_t *keys = makePlane(numbers, slots, width, type),
          *values = makePlane(numbers, slots, width, type);
  Buffer<int32_t> seq(all), begin(sequences + 1, 0),
      length(sequences, static_cast<int32_t>(context)),
      table(pages * sequences);
  for (int64_t t = 0; t < all; ++t)
    seq[t] = static_cast<int32_t>(t / tokens);
  for (int64_t s = 0; s <= sequences; ++s)
    begin[s] = static_cast<int32_t>(s * tokens);
  // Sequences that grow together take turns with the pages.
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t i = 0; i < pages; ++i)
      table[s * pages + i] =
          static_cast<int32_t>(page ? i * sequences + s : s * context);
  int64_t items = std::max((all + tile - 1) / tile, minTiles) * kvHeads;
  int64_t spans = (context + 255) / 256, few = std::min(all, split);
  Buffer<float> scales(slots * kvHeads, 0.01f);
  Buffer<float> partials(few * heads * spans * (size + 2));
  double seconds = measure([&](int thread) {
    std::vector<const void *> buffers{q.data(),    keys,         values,
                                      seq.data(),  begin.data(), length.data(),
                                      table.data()};
    if (bytes == 1)
      buffers.insert(buffers.end(), 2, scales.data());
    buffers.insert(buffers.end(), {out.data(), partials.data()});
    kernel.call(all, buffers, {all, pages, sequences, items, spans},
                items * thread / threads, items * (thread + 1) / threads);
    int64_t rows = few * kvHeads;
    if (all > split)
      return;
    merge.call(
        all,
        {partials.data(), seq.data(), begin.data(), length.data(), out.data()},
        {all, spans}, rows * thread / threads, rows * (thread + 1) / threads);
  });
  double seen =
      static_cast<double>(all) *
      (static_cast<double>(context) - static_cast<double>(tokens - 1) / 2);
  printf("%-48s %10.1f us %7.1f GFLOP/s", name.c_str(), seconds * 1e6,
         seen * static_cast<double>(heads * size) * 4 / seconds * 1e-9);
  if (tokens == 1)
    printf(" %6.1f GB/s",
           static_cast<double>(2 * sequences * context * width * bytes) /
               seconds * 1e-9);
  printf("\n");
  fflush(stdout);
  free(keys);
  free(values);
}

/// Rotating the keys of `tokens` of each of `sequences`, and storing them and
/// the values after `context` slots.
static void benchAppend(const Shape &shape, int64_t tokens, int64_t context,
                        int64_t sequences) {
  int64_t heads = shape.kvHeads, size = shape.size, width = heads * size;
  int64_t all = tokens * sequences;
  std::string name = "append " + std::to_string(heads) + "x" +
                     std::to_string(size) + " " + shape.cacheType +
                     " T=" + std::to_string(all) +
                     " S=" + std::to_string(sequences) + " context " +
                     std::to_string(context) + (onlyRows ? " rows" : "");
  if (name.find(filter) == std::string::npos)
    return;
  std::string common = "{" + entry("width", width) + entry("heads", heads),
              rotation = entry("size", size) + entry("rotary_dim", size) +
                         entry("positions", 8) + "interleaved = false",
              type = ", cache_type = " + shape.cacheType;
  CompiledKernel rope("rope", "{" + entry("heads", heads) + rotation + "}",
                      mcpu),
      key("kv_append",
          common +
              (onlyRows ? "plane = \"rows\""
                        : rotation + ", plane = \"key_blocks\"") +
              type + "}",
          mcpu),
      value("kv_append",
            common + "plane = \"" + (onlyRows ? "rows" : "value_blocks") +
                "\"" + type + "}",
            mcpu);
  // A sequence has room up to the next multiple of 64.
  int64_t room = (context + tokens + 63) / 64 * 64, slots = room * sequences;
  Buffer<float> x = randomFloats(all * width, 1), y = x,
                table = randomFloats(8 * size, 2), scales(slots * heads);
  Buffer<uint8_t> keys(slots * width * bytesOf(shape.cacheType)), values = keys;
  Buffer<int32_t> slot(all), seq(all), position(all, 3);
  for (int64_t t = 0; t < all; ++t) {
    seq[t] = static_cast<int32_t>(t / tokens);
    slot[t] = static_cast<int32_t>(seq[t] * room + context + t % tokens);
  }
  double seconds = measure([&](int thread) {
    int64_t begin = all * thread / threads, end = all * (thread + 1) / threads;
    std::vector<const void *> in{onlyRows ? y.data() : x.data(), slot.data(),
                                 seq.data()};
    std::vector<const void *> tables{position.data(), table.data(),
                                     table.data()};
    if (onlyRows)
      rope.call(all, {x.data(), tables[0], tables[1], tables[2], y.data()},
                {all}, begin, end);
    else
      in.insert(in.end(), tables.begin(), tables.end());
    in.push_back(keys.data());
    if (bytesOf(shape.cacheType) == 1)
      in.push_back(scales.data());
    key.call(all, in, {all}, begin, end);
    in = {x.data(), slot.data(), seq.data(), values.data()};
    if (bytesOf(shape.cacheType) == 1)
      in.push_back(scales.data());
    value.call(all, in, {all}, begin, end);
  });
  printf("%-48s %10.1f us\n", name.c_str(), seconds * 1e6);
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc > 1)
    mcpu = argv[1];
  if (argc > 2)
    filter = argv[2];
  if (argc > 3)
    threads = static_cast<int>(llm::bench::parseCount(argv[3]));
  onlyRows = argc > 4 && std::string(argv[4]) == "rows";
  for (const char *type : {"f32", "f16", "bf16", "i8", "f8E4M3FN", "f8E5M2"})
    for (const Shape &shape :
         {Shape{9, 3, 64, type}, Shape{32, 8, 128, type}}) {
      for (auto [tokens, context] : {std::pair<int64_t, int64_t>{64, 64},
                                     {512, 512},
                                     {8192, 8192},
                                     {512, 8192},
                                     {1, 512},
                                     {1, 8192},
                                     {1, 65536}})
        bench(shape, tokens, context, 64);
      bench(shape, 512, 8192, 24);
      bench(shape, 32, 32, 64, 16);
      for (int64_t context : {64, 256, 1024, 2048})
        bench(shape, 1, context, 64, 16);
      benchAppend(shape, 512, 0, 1);
      benchAppend(shape, 1, 40, 1);
      for (int64_t context : {40, 1030})
        benchAppend(shape, 1, context, 16);
    }
  return 0;
}
