//===- kernels-bench.cpp - Speed of single CPU kernels --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kernels-bench [--mcpu=CPU] [--threads=2] [--filter=TEXT] [--cached]
//               [--limits] [--shape=N,K] [--rows=1,4,16,...]
//               [--format=q4g32,bf16,...]
//
// Generates kernels, runs them on all threads at once and prints the median and
// the best time, operations a second (two a multiply-add) and bytes of weights
// a second, each with its part of what the machine does in the same run.
// Weights rotate through a pool, so that they come from memory where a model's
// would, unless --cached. --limits only measures the machine, and prints JSON.
//
//===----------------------------------------------------------------------===//
#include "benchmarks/kernels/Arguments.h"
#include "passes/Kernels/Layouts.h"
#include "runtime/core/MachineLimits.h"
#include "test/unit/kernels/Harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace llm::test;
using namespace llm::bench;
using namespace llm::runtime;

namespace {
struct Options {
  std::string mcpu = "native", filter;
  int threads = 2;
  bool cached = false, limits = false;
  std::vector<std::pair<int64_t, int64_t>> shapes;
  std::vector<int64_t> rows{1, 4, 8, 16, 64, 256};
  std::vector<std::string> formats{"f32",    "f16",   "bf16",
                                   "bf16a3", "q4g32", "q4g128",
                                   "q8g128", "q8row", "q4f32"};
};
} // namespace

static Options options;
static MachineLimits peaks;

static void report(const std::string &name, double bytes, double ops,
                   double peak, const std::function<void(int, int)> &work) {
  if (name.find(options.filter) == std::string::npos)
    return;
  Times times = measure(options.threads, 0.3, work);
  printf("%-34s %10.1f us  best %10.1f us", name.c_str(), times.median * 1e6,
         times.best * 1e6);
  double opRate = ops / times.median, byteRate = bytes / times.median;
  printf("  %7.1f GOP/s", opRate * 1e-9);
  if (peak > 0)
    printf(" %5.1f%%", 100 * opRate / peak);
  else
    printf("       ");
  printf("  %6.1f GB/s %5.1f%%\n", byteRate * 1e-9,
         100 * byteRate / peaks.readBytes);
  fflush(stdout);
}

static std::string entry(const char *name, int64_t value) {
  return std::string(name) + " = " + std::to_string(value) + " : i64, ";
}

/// Items of a grid for one of the threads.
static std::pair<int64_t, int64_t> share(int64_t items, int thread) {
  int64_t each = (items + options.threads - 1) / options.threads;
  int64_t begin = std::min(items, each * thread);
  return {begin, std::min(items, begin + each)};
}

//===----------------------------------------------------------------------===//
// linear
//===----------------------------------------------------------------------===//

namespace {
/// What a name like q4g32 stands for.
struct Format {
  std::string layout; ///< without n and k
  int level = 0;
  double peak = 0;
  int64_t sumGroup = 0;   ///< inputs whose sum quantize_rows writes
  int64_t scaleGroup = 0; ///< inputs in int8 that share a scale
};
} // namespace

static Format parseFormat(const std::string &name, int64_t k) {
  auto panel = [](const char *kind, const char *type) {
    return std::string("kind = \"") + kind + "\", type = " + type;
  };
  if (name == "f32" || name == "f16")
    return {panel("panel", name.c_str()), 0, peaks.f32};
  if (name == "bf16")
    return {panel("panel_pairs", "bf16"), 0, peaks.f32};
  if (name == "bf16a3")
    return {panel("panel_pairs", "bf16"), 3, peaks.bf16};
  // qBgG, qBrow, with int8 inputs, sS: S of them share a scale, pP: P of a
  // group share a factor, z: zero points; qBf32: f32 inputs.
  if (name.size() < 3 || name[0] != 'q') {
    fprintf(stderr, "unknown format %s\n", name.c_str());
    exit(1);
  }
  int bits = name[1] - '0';
  std::string rest = name.substr(2);
  auto count = [&](char letter, int64_t otherwise) {
    size_t at = rest.find(letter),
           end = rest.find_first_not_of("0123456789", at + 1);
    return at == std::string::npos
               ? otherwise
               : parseCount(rest.substr(at + 1, end - at - 1));
  };
  int64_t group = rest.find("row") == 0 ? k : count('g', 32);
  int64_t part = count('p', 0);
  std::string scales = part ? entry("factor_group", part) + "scale_type = f32"
                            : "scale_type = f16";
  Format format{"kind = \"panel_affine\", " + entry("bits", bits) +
                    entry("group_size", group) + scales,
                rest.find("f32") == 0 ? 0 : 4, 0, part ? part : group,
                count('s', group)};
  if (rest.back() == 'z')
    format.layout += ", zero_type = ui8";
  format.peak = format.level == 4 ? peaks.int8 : peaks.f32;
  return format;
}

static void benchLinear(const std::string &formatName, int64_t n, int64_t k) {
  Format format = parseFormat(formatName, k);
  std::string name =
      formatName + " " + std::to_string(n) + "x" + std::to_string(k);
  if ((name + " T=").find(options.filter) == std::string::npos &&
      options.filter.find("T=") == std::string::npos)
    return;
  std::string size = entry("n", n) + entry("k", k);
  std::string layout = "{" + size + format.layout + "}";
  CompiledKernel kernel("linear",
                        "{" + size + entry("accuracy_level", format.level) +
                            (format.level == 4
                                 ? entry("activation_group", format.scaleGroup)
                                 : "") +
                            "layout = " + layout + "}",
                        options.mcpu);
  int64_t panels = (n + 31) / 32, bytes = layoutBytes(layout);
  int64_t copies =
      options.cached ? 1 : std::max<int64_t>(1, (int64_t(512) << 20) / bytes);
  Buffer<uint8_t> weights(bytes * copies, 0x11);
  for (int64_t rows : options.rows) {
    Buffer<float> x = randomFloats(rows * k, 1), out(rows * n);
    Buffer<uint8_t> narrow(rows * (k + 256) * 2, 1);
    int64_t groups = format.sumGroup ? (k - 1) / format.sumGroup + 1 : 1;
    Buffer<float> scales(rows * groups, 0.01f);
    Buffer<int32_t> offsets(rows * groups, 7);
    std::vector<const void *> inputs{x.data()};
    if (format.level == 3)
      inputs = {narrow.data()};
    if (format.level == 4)
      inputs = {narrow.data(), scales.data(), offsets.data()};
    report(name + " T=" + std::to_string(rows), static_cast<double>(bytes),
           2.0 * static_cast<double>(rows * n * k), format.peak,
           [&](int thread, int round) {
             std::vector<const void *> buffers = inputs;
             buffers.push_back(weights.data() + round % copies * bytes);
             buffers.push_back(out.data());
             auto [begin, end] = share(panels, thread);
             kernel.call(rows, buffers, {rows}, begin, end);
           });
  }
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

static void benchRows(const std::string &family, const std::string &params,
                      int64_t width, int64_t inputs, int64_t outputs) {
  std::string name = family + " 64x" + std::to_string(width);
  if (name.find(options.filter) == std::string::npos)
    return;
  CompiledKernel kernel(family, params, options.mcpu);
  constexpr int64_t kRows = 64;
  Buffer<float> a = randomFloats(kRows * width, 1), b = a;
  Buffer<float> out(kRows * (width + 64)), scales(kRows * width);
  Buffer<int32_t> offsets(kRows * width);
  std::vector<const void *> buffers{a.data(), b.data()};
  buffers.resize(inputs);
  buffers.push_back(out.data());
  if (outputs == 3) {
    buffers.push_back(scales.data());
    buffers.push_back(offsets.data());
  }
  report(name, static_cast<double>((inputs + 1) * kRows * width * 4), 0, 0,
         [&](int thread, int) {
           auto [begin, end] = share(kRows, thread);
           kernel.call(kRows, buffers, {kRows}, begin, end);
         });
}

static std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

static void parseArguments(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string text = argv[i];
    size_t equals = text.find('=');
    std::string name = text.substr(0, equals);
    std::string value =
        equals == std::string::npos ? "" : text.substr(equals + 1);
    if (name == "--mcpu") {
      options.mcpu = value;
    } else if (name == "--filter") {
      options.filter = value;
    } else if (name == "--threads") {
      options.threads = static_cast<int>(parseCount(value));
    } else if (name == "--cached") {
      options.cached = true;
    } else if (name == "--limits") {
      options.limits = true;
    } else if (name == "--shape") {
      std::vector<std::string> parts = split(value);
      if (parts.size() == 2)
        options.shapes.push_back({parseCount(parts[0]), parseCount(parts[1])});
    } else if (name == "--rows") {
      options.rows.clear();
      for (const std::string &part : split(value))
        options.rows.push_back(parseCount(part));
    } else if (name == "--format") {
      options.formats = split(value);
    } else {
      fprintf(stderr, "unknown option %s\n", text.c_str());
      exit(1);
    }
  }
}

int main(int argc, char **argv) {
  parseArguments(argc, argv);
  peaks = measureLimits(options.threads);
  if (options.limits) {
    printf("{\"read\": %.0f, \"f32\": %.0f, \"int8\": %.0f, \"bf16\": %.0f}\n",
           peaks.readBytes, peaks.f32, peaks.int8, peaks.bf16);
    return 0;
  }
  printf("peaks of %d threads: read %.1f GB/s, f32 %.0f, int8 %.0f, bf16 %.0f "
         "GOP/s\n",
         options.threads, peaks.readBytes * 1e-9, peaks.f32 * 1e-9,
         peaks.int8 * 1e-9, peaks.bf16 * 1e-9);
  bool all = options.shapes.empty();
  if (all)
    options.shapes = {{1536, 576}, {576, 1536}, {2048, 2048}, {5632, 2048}};
  for (auto [n, k] : options.shapes)
    for (const std::string &format : options.formats)
      benchLinear(format, n, k);
  if (!all)
    return 0;
  std::string norm = "{dim = 2048 : i64, epsilon = 1.0e-5 : f64",
              silu = "{width = 5632 : i64, ops = [\"in0\", \"silu\", \"in1\", "
                     "\"mul\"]",
              int8 = ", output = \"int8\", group_size = 32 : i64, zero = 8 : "
                     "i64}";
  benchRows("rms_norm", norm + "}", 2048, 2, 1);
  benchRows("rms_norm", norm + int8, 2048, 2, 3);
  benchRows("elementwise", silu + "}", 5632, 2, 1);
  benchRows("elementwise", silu + int8, 5632, 2, 3);
  benchRows("quantize_rows",
            "{k = 2048 : i64, group_size = 32 : i64, zero = 8 : i64}", 2048, 1,
            3);
  benchRows("cast_rows", "{k = 2048 : i64}", 2048, 1, 1);
  return 0;
}
