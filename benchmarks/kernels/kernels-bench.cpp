//===- kernels-bench.cpp - Speed of single CPU kernels --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kernels-bench [MCPU] [FILTER] [cached]: one thread, CPU time of the thread
// (other processes on the core do not count), median and best of the
// repetitions. Weights rotate through a pool, so that they come from memory
// where a model's would, unless `cached`; GB/s counts the weight bytes
// read, GFLOP/s two per multiply-add.
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Harness.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>

using namespace llm::test;

static std::string mcpu = "native", filter;
static bool cached = false;

static double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

static void measure(const std::string &name, double bytes, double flops,
                    const std::function<void(int)> &call) {
  call(0);
  std::vector<double> times;
  double spent = 0;
  for (int i = 1; i < 5 || (spent < 0.4 && i < 2000); ++i) {
    double begin = cpuSeconds();
    call(i);
    times.push_back(cpuSeconds() - begin);
    spent += times.back();
  }
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2], best = times.front();
  printf("%-36s median %9.1f us  best %9.1f us", name.c_str(), median * 1e6,
         best * 1e6);
  if (bytes > 0)
    printf("  %6.1f GB/s", bytes / median * 1e-9);
  if (flops > 0)
    printf("  %6.1f GFLOP/s", flops / median * 1e-9);
  printf("\n");
}

static std::string entry(const char *name, int64_t value) {
  return std::string(name) + " = " + std::to_string(value) + " : i64, ";
}

static bool skipped(const std::string &name) {
  return name.find(filter) == std::string::npos;
}

/// `layout` without n and k, `bytesPerPanel` of a panel of 32 outputs.
static void benchLinear(const std::string &kind, const std::string &layout,
                        int64_t n, int64_t k, int64_t panelBytes, int level) {
  std::string name =
      "linear " + kind + " " + std::to_string(n) + "x" + std::to_string(k);
  if (skipped(name))
    return;
  std::string size = entry("n", n) + entry("k", k);
  CompiledKernel kernel("linear",
                        "{" + size + entry("accuracy_level", level) +
                            "layout = {" + size + layout + "}}",
                        mcpu);
  int64_t panels = (n + 31) / 32, bytes = panels * panelBytes;
  int64_t copies =
      cached ? 1 : std::max<int64_t>(1, (int64_t(512) << 20) / bytes);
  Buffer<uint8_t> weights(bytes * copies, 0);
  Buffer<float> scales(128 * (k / 16 + 1), 0.01f), sums = scales;
  for (int64_t rows : {1, 2, 4, 8, 16, 128}) {
    Buffer<float> x = randomFloats(rows * k, 1), out(rows * n);
    measure(name + " T=" + std::to_string(rows), static_cast<double>(bytes),
            2.0 * static_cast<double>(rows * n * k), [&](int i) {
              const void *weight = weights.data() + i % copies * bytes;
              if (level == 4)
                kernel.call(
                    rows,
                    {x.data(), scales.data(), sums.data(), weight, out.data()},
                    {rows}, 0, panels);
              else
                kernel.call(rows, {x.data(), weight, out.data()}, {rows}, 0,
                            panels);
            });
  }
}

static void benchRows(const std::string &family, const std::string &params,
                      int64_t width, int64_t inputs) {
  if (skipped(family))
    return;
  CompiledKernel kernel(family, params, mcpu);
  constexpr int64_t kRows = 64;
  Buffer<float> a = randomFloats(kRows * width, 1), b = a, out(kRows * width);
  measure(family + " 64x" + std::to_string(width),
          static_cast<double>((inputs + 1) * kRows * width * 4), 0, [&](int) {
            kernel.call(kRows, {a.data(), b.data(), out.data()}, {kRows}, 0,
                        kRows);
          });
}

int main(int argc, char **argv) {
  if (argc > 1)
    mcpu = argv[1];
  if (argc > 2)
    filter = argv[2];
  cached = argc > 3 && std::string(argv[3]) == "cached";
  for (auto [n, k] :
       {std::pair<int64_t, int64_t>{1536, 576}, {576, 1536}, {49152, 576}}) {
    benchLinear("f32", "kind = \"panel\", type = f32", n, k, k * 128, 0);
    benchLinear("bf16", "kind = \"panel\", type = bf16", n, k, k * 64, 0);
    int64_t group4 = 32 * 16 + 64, group8 = 32 * 32 + 64;
    std::string q4 = "kind = \"panel_affine\", bits = 4 : i64, group_size = 32 "
                     ": i64, scale_type = f16",
                q8 = "kind = \"panel_affine\", bits = 8 : i64, group_size = 32 "
                     ": i64, scale_type = f16";
    benchLinear("q4 f32", q4, n, k, k / 32 * group4, 0);
    benchLinear("q4 int8", q4, n, k, k / 32 * group4, 4);
    benchLinear("q8 int8", q8, n, k, k / 32 * group8, 4);
  }
  benchRows("rms_norm", "{dim = 576 : i64, epsilon = 1.0e-5 : f64}", 576, 1);
  benchRows("elementwise",
            "{width = 1536 : i64, ops = [\"in0\", \"silu\", \"in1\", \"mul\"]}",
            1536, 2);
  return 0;
}
