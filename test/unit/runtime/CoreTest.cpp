//===- CoreTest.cpp - Expressions, threads, sizes, files ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "runtime/core/CPUFeatures.h"
#include "runtime/core/Expr.h"
#include "runtime/core/Limits.h"
#include "runtime/core/Memory.h"
#include "runtime/core/OutputFile.h"
#include "runtime/core/Printable.h"
#include "runtime/core/ThreadPool.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace llm;
using namespace llm::runtime;
using artifact::Expr;

namespace {

Expr postfix(std::initializer_list<std::pair<Expr::Op, int64_t>> nodes) {
  Expr expr;
  for (auto [op, value] : nodes) {
    Expr::Node *node = expr.add_nodes();
    node->set_op(op);
    node->set_value(value);
  }
  return expr;
}

TEST(Printable, IsOneLineOfBoundedLength) {
  EXPECT_EQ(printable("a 'b' \xc3\xa9"), "a 'b' \xc3\xa9");
  EXPECT_EQ(printable(std::string_view("a\nb\t\x1b[31m\0\x7f", 11)),
            "a\\nb\\t\\x1b[31m\\x00\\x7f");
  std::string text;
  while (text.size() < 100000)
    text += "\xe2\x96\x81";
  std::string cut = printable(text);
  EXPECT_LT(cut.size(), 8300U);
  EXPECT_EQ(cut.substr(0, 4095), text.substr(0, 4095));
  EXPECT_NE(cut.find(" ... 91812 bytes ... \xe2"), std::string::npos) << cut;
}

TEST(Expr, Evaluates) {
  std::vector<int64_t> symbols{7, 100};
  // ceildiv(T, 3) * 10 + min(S, max(T, 50))
  Expr expr = postfix({{Expr::SYMBOL, 0},
                       {Expr::CONSTANT, 3},
                       {Expr::CEIL_DIV, 0},
                       {Expr::CONSTANT, 10},
                       {Expr::MUL, 0},
                       {Expr::SYMBOL, 1},
                       {Expr::SYMBOL, 0},
                       {Expr::CONSTANT, 50},
                       {Expr::MAX, 0},
                       {Expr::MIN, 0},
                       {Expr::ADD, 0}});
  ASSERT_TRUE(verifyExpr(expr, 2));
  EXPECT_EQ(*evaluateExpr(expr, symbols), 3 * 10 + 50);
}

TEST(Expr, CeilDivNearTheLimit) {
  Expr expr = postfix({{Expr::SYMBOL, 0},
                       {Expr::CONSTANT, INT64_MAX - 1},
                       {Expr::CEIL_DIV, 0}});
  EXPECT_EQ(*evaluateExpr(expr, std::vector<int64_t>{INT64_MAX}), 2);
  EXPECT_EQ(*evaluateExpr(expr, std::vector<int64_t>{INT64_MAX - 1}), 1);
  EXPECT_EQ(*evaluateExpr(expr, std::vector<int64_t>{0}), 0);
}

TEST(Expr, ReportsOverflowAndDivisionByZero) {
  Expr product =
      postfix({{Expr::SYMBOL, 0}, {Expr::SYMBOL, 0}, {Expr::MUL, 0}});
  EXPECT_TRUE(evaluateExpr(product, std::vector<int64_t>{3037000499}));
  EXPECT_FALSE(evaluateExpr(product, std::vector<int64_t>{3037000500}));
  Expr sum = postfix({{Expr::SYMBOL, 0}, {Expr::CONSTANT, 1}, {Expr::ADD, 0}});
  EXPECT_FALSE(evaluateExpr(sum, std::vector<int64_t>{INT64_MAX}));
  Expr quotient =
      postfix({{Expr::CONSTANT, 1}, {Expr::SYMBOL, 0}, {Expr::CEIL_DIV, 0}});
  EXPECT_FALSE(evaluateExpr(quotient, std::vector<int64_t>{0}));
  EXPECT_FALSE(evaluateExpr(sum, std::vector<int64_t>{-1}));
}

TEST(Expr, VerifierRefuses) {
  EXPECT_FALSE(verifyExpr(postfix({}), 1));
  EXPECT_FALSE(verifyExpr(postfix({{Expr::SYMBOL, 1}}), 1));
  EXPECT_FALSE(verifyExpr(postfix({{Expr::SYMBOL, -1}}), 1));
  EXPECT_FALSE(verifyExpr(postfix({{Expr::CONSTANT, -1}}), 1));
  EXPECT_FALSE(verifyExpr(postfix({{Expr::ADD, 0}}), 1));
  EXPECT_FALSE(verifyExpr(postfix({{Expr::CONSTANT, 1}, {Expr::ADD, 0}}), 1));
  EXPECT_FALSE(
      verifyExpr(postfix({{Expr::CONSTANT, 1}, {Expr::CONSTANT, 1}}), 1));
  EXPECT_FALSE(verifyExpr(postfix({{static_cast<Expr::Op>(99), 0}}), 1));
  Expr deep;
  for (int i = 0; i <= maxExprDepth; ++i)
    deep.add_nodes()->set_value(1);
  for (int i = 0; i < maxExprDepth; ++i)
    deep.add_nodes()->set_op(Expr::ADD);
  EXPECT_FALSE(verifyExpr(deep, 1));
  Expr longest;
  for (int i = 0; i <= maxExprNodes; ++i)
    longest.add_nodes()->set_op(i < 2 || i % 2 ? Expr::CONSTANT : Expr::ADD);
  EXPECT_FALSE(verifyExpr(longest, 1));
}

TEST(ThreadPool, EveryItemOnceInContiguousRanges) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int64_t count : {0, 1, 2, 3, 7, 8, 9, 1000}) {
      std::vector<int> visits(static_cast<size_t>(count), 0);
      std::atomic<int> calls{0};
      pool.parallelFor(count, [&](int64_t begin, int64_t end) {
        EXPECT_LT(begin, end);
        ++calls;
        for (int64_t i = begin; i < end; ++i)
          ++visits[static_cast<size_t>(i)];
      });
      EXPECT_LE(calls, 4 * threads);
      for (int visit : visits)
        EXPECT_EQ(visit, 1);
    }
  }
}

TEST(ThreadPool, EachLoopSeesTheOneBefore) {
  ThreadPool pool(4);
  std::vector<int64_t> a(64, 0), b(64, 0);
  // Ranges differ between the loops, so every loop reads others' writes.
  for (int64_t round = 1; round <= 2000; ++round) {
    pool.parallelFor(64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        a[static_cast<size_t>(i)] = b[static_cast<size_t>(63 - i)] + 1;
    });
    pool.parallelFor(63, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        b[static_cast<size_t>(i)] = a[static_cast<size_t>(63 - i)];
    });
    b[63] = a[0];
    for (int64_t value : b)
      ASSERT_EQ(value, round);
  }
}

// Many more threads than processors: progress does not need them all.
TEST(ThreadPool, OversubscribedLoopsEnd) {
  ThreadPool pool(32);
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 2000; ++round)
    pool.parallelFor(32 + round % 7,
                     [&](int64_t begin, int64_t end) { sum += end - begin; });
  int64_t expected = 0;
  for (int round = 0; round < 2000; ++round)
    expected += 32 + round % 7;
  EXPECT_EQ(sum, expected);
}

TEST(ThreadPool, WakesAfterParking) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int64_t> sum{0};
    pool.parallelFor(100, [&](int64_t begin, int64_t end) {
      // Long enough for the caller to park as well.
      if (begin > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      for (int64_t i = begin; i < end; ++i)
        sum += i;
    });
    EXPECT_EQ(sum, 4950);
  }
}

TEST(Limits, ParsesSizes) {
  EXPECT_EQ(*parseSize("0"), 0u);
  EXPECT_EQ(*parseSize("123"), 123u);
  EXPECT_EQ(*parseSize("2KiB"), 2048u);
  EXPECT_EQ(*parseSize("1.5GiB"), uint64_t(3) << 29);
  EXPECT_EQ(*parseSize("3GB"), 3000000000u);
  for (const char *bad : {"", "x", "-1", "1XB", "GiB", "1 GiB", "nan", "1e30"})
    EXPECT_FALSE(parseSize(bad)) << bad;
}

TEST(CPUFeatures, KnowsWhatTheCompilerUses) {
#if defined(__x86_64__)
  EXPECT_TRUE(cpuHasFeature("sse2"));
  EXPECT_TRUE(cpuHasFeature("+sse2"));
  __builtin_cpu_init();
  EXPECT_EQ(cpuHasFeature("ssse3"), __builtin_cpu_supports("ssse3") != 0);
  EXPECT_EQ(cpuHasFeature("sse4.1"), __builtin_cpu_supports("sse4.1") != 0);
  EXPECT_EQ(cpuHasFeature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpuHasFeature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(cpuHasFeature("avx512vnni"),
            __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(cpuHasFeature("avx512bf16"),
            __builtin_cpu_supports("avx512bf16") != 0);
  EXPECT_EQ(cpuHasFeature("fma"), __builtin_cpu_supports("fma") != 0);
#endif
  EXPECT_EQ(missingCpuFeatures(std::vector<std::string>{"entanglement"}),
            std::vector<std::string>{"entanglement"});
}

std::string readBack(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(OutputFile, KeepsTheOldFileUntilCommitted) {
  test::TemporaryFile old("old");
  {
    auto file = OutputFile::create(old.path());
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("new", 3));
  }
  EXPECT_EQ(readBack(old.path()), "old");
  {
    auto file = OutputFile::create(old.path());
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("new", 3));
    ASSERT_TRUE(file->writeAt(5, "!", 1));
    ASSERT_TRUE(file->commit());
  }
  EXPECT_EQ(readBack(old.path()), std::string("new\0\0!", 6));
}

TEST(OutputFile, SaysWhatIsWrong) {
  auto file = OutputFile::create("/nonexistent-directory/file");
  ASSERT_FALSE(file);
  EXPECT_NE(file.status().message().find("/nonexistent-directory/file"),
            std::string::npos);
}

TEST(OutputFile, WritesIntoAPipe) {
  std::string path = testing::TempDir() + "/OutputFileWritesIntoAPipe";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto file = OutputFile::create(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("text", 4));
  ASSERT_TRUE(file->commit());
  char bytes[8];
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 4);
  struct stat info;
  ASSERT_EQ(lstat(path.c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
  close(reader);
  unlink(path.c_str());
}

TEST(OutputFile, OfAKindDoesNotOpenAPipe) {
  std::string path = testing::TempDir() + "/OutputFileOfAKind";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Opening it would wait for a reader.
  auto file = OutputFile::create(path, OutputFile::Kind::Regular);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.status().message(),
            path + ": cannot write: not a regular file");
  unlink(path.c_str());
}

TEST(OutputFile, FollowsLinks) {
  test::TemporaryFile old("old");
  std::string link = testing::TempDir() + "/OutputFileFollowsLinks";
  unlink(link.c_str());
  ASSERT_EQ(symlink(old.path().c_str(), link.c_str()), 0);
  auto file = OutputFile::create(link);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("new", 3));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(readBack(old.path()), "new");
  struct stat info;
  ASSERT_EQ(lstat(link.c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  unlink(link.c_str());

  ASSERT_EQ(symlink(link.c_str(), link.c_str()), 0);
  auto loop = OutputFile::create(link);
  ASSERT_FALSE(loop);
  EXPECT_EQ(loop.status().message(),
            link + ": cannot write: Too many levels of symbolic links");
  unlink(link.c_str());
}

TEST(OutputFile, LeavesNothingWhenASignalEndsTheProcess) {
  char directory[] = "/tmp/OutputFileXXXXXX";
  ASSERT_TRUE(mkdtemp(directory));
  auto entries = [&] {
    return std::distance(std::filesystem::directory_iterator(directory),
                         std::filesystem::directory_iterator());
  };
  {
    // More than are remembered at once: the others end with the scope.
    std::vector<OutputFile> files;
    for (int i = 0; i < 12; ++i) {
      auto file =
          OutputFile::create(std::string(directory) + "/" + std::to_string(i));
      ASSERT_TRUE(file);
      files.push_back(*std::move(file));
    }
    EXPECT_EQ(entries(), 12);
    OutputFile::removeUnfinished();
    EXPECT_EQ(entries(), 4);
  }
  EXPECT_EQ(entries(), 0);
  // A file that is complete stays.
  auto file = OutputFile::create(std::string(directory) + "/kept");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->commit());
  OutputFile::removeUnfinished();
  EXPECT_EQ(entries(), 1);
  std::filesystem::remove_all(directory);
}

TEST(Allocation, IsZeroedAndAligned) {
  for (uint64_t bytes : {uint64_t(1), uint64_t(4097), uint64_t(5) << 20}) {
    auto memory = Allocation::create(bytes);
    ASSERT_TRUE(memory);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0u);
    EXPECT_EQ(memory->data()[0], std::byte(0));
    EXPECT_EQ(memory->data()[bytes - 1], std::byte(0));
    memory->data()[bytes - 1] = std::byte(1);
  }
  EXPECT_FALSE(Allocation::create(uint64_t(1) << 62));
}

} // namespace
