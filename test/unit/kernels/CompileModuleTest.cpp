//===- CompileModuleTest.cpp - MLIR to a closed ELF object ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CPU/CompileModule.h"

#include "lib/Pipeline/Register.h"
#include "llm/ABI/kernel.h"
#include "mlir/Parser/Parser.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using llm::TableEntry;

namespace {
class CompileModule : public ::testing::Test {
protected:
  CompileModule() {
    DialectRegistry registry;
    llm::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    std::string error;
    target = *llm::CPUTarget::get("x86-64-v3", error);
  }

  /// Compiles `text`; what was reported is in `message`.
  FailureOr<SmallVector<char, 0>> compile(StringRef text,
                                          ArrayRef<TableEntry> entries) {
    message.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str() + "\n";
      return success();
    });
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(module) << message;
    return llm::compileToSharedObject(*module, target, entries);
  }
  void expectError(StringRef text, ArrayRef<TableEntry> entries,
                   const char *part) {
    EXPECT_TRUE(failed(compile(text, entries)));
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  static void *open(ArrayRef<char> object) {
    int fd = memfd_create("code", MFD_CLOEXEC);
    EXPECT_EQ(write(fd, object.data(), object.size()),
              static_cast<ssize_t>(object.size()));
    void *library = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                           RTLD_NOW | RTLD_LOCAL);
    close(fd);
    return library;
  }
  static const llm_kernel_table *tableOf(void *library) {
    return static_cast<const llm_kernel_table *>(
        dlsym(library, LLM_KERNEL_TABLE_SYMBOL));
  }

  MLIRContext context;
  llm::CPUTarget target;
  std::string message;
};
} // namespace

static const char *kKernel = R"(
func.func @twice(%x: memref<64xf32>, %y: memref<64xf32>, %n: i64,
                 %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %v = memref.load %x[%i] : memref<64xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %y[%i] : memref<64xf32>
  }
  return
})";

TEST_F(CompileModule, SameInputSameBytes) {
  auto first = compile(kKernel, {{"twice"}});
  auto second = compile(kKernel, {{"twice"}});
  ASSERT_TRUE(succeeded(first) && succeeded(second)) << message;
  EXPECT_EQ(*first, *second);
}

TEST_F(CompileModule, TableOfKernelsAndHostFunctions) {
  std::string text = kKernel;
  // A copy of a size that only the call knows: needs memcpy, which the object
  // brings along.
  text += R"(
llvm.func @host(%host: !llvm.ptr, %in: !llvm.ptr, %out: !llvm.ptr,
                %constants: !llvm.ptr) -> i32 {
  %n = llvm.load %constants : !llvm.ptr -> i64
  "llvm.intr.memcpy"(%out, %in, %n) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  "llvm.intr.memmove"(%host, %out, %n) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  %r = llvm.mlir.constant(7 : i32) : i32
  llvm.return %r : i32
})";
  auto object = compile(text, {{"twice"}, {"host", TableEntry::Kind::Host}});
  ASSERT_TRUE(succeeded(object)) << message;
  void *library = open(*object);
  ASSERT_TRUE(library) << dlerror();
  auto *table = tableOf(library);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->abi_version, uint32_t(LLM_KERNEL_ABI_VERSION));
  ASSERT_EQ(table->num_entries, 2u);
  EXPECT_STREQ(table->entries[0].name, "twice");
  EXPECT_STREQ(table->entries[1].name, "host");
  EXPECT_FALSE(dlsym(library, "twice"));
  EXPECT_FALSE(dlsym(library, "memcpy"));

  alignas(64) float x[64], y[64] = {};
  for (int i = 0; i < 64; ++i)
    x[i] = static_cast<float>(i);
  void *buffers[] = {x, y};
  int64_t size = 64;
  reinterpret_cast<llm_kernel_fn>(table->entries[0].function)(buffers, &size,
                                                              10, 20);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(y[i], i >= 10 && i < 20 ? 2 * i : 0);

  // Overlapping by one byte, both ways round.
  std::string from(1000, 0), to(1001, '#');
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<char>('a' + i % 26);
  int64_t count = 1000;
  auto host = reinterpret_cast<llm_host_fn>(table->entries[1].function);
  EXPECT_EQ(host(reinterpret_cast<llm_host *>(to.data() + 1),
                 reinterpret_cast<llm_tensor *>(from.data()),
                 reinterpret_cast<llm_tensor *>(to.data()),
                 reinterpret_cast<const void *const *>(&count)),
            7);
  EXPECT_EQ(to, from.substr(0, 1) + from);
  EXPECT_EQ(host(reinterpret_cast<llm_host *>(to.data()),
                 reinterpret_cast<llm_tensor *>(from.data()),
                 reinterpret_cast<llm_tensor *>(to.data() + 1),
                 reinterpret_cast<const void *const *>(&count)),
            7);
  EXPECT_EQ(to, from + from.back());
  dlclose(library);
}

TEST_F(CompileModule, NamesWhatIsUndefined) {
  expectError(R"(
    func.func private @outside(f32) -> f32
    func.func @k(%x: memref<4xf32>, %begin: index, %end: index) {
      %v = memref.load %x[%begin] : memref<4xf32>
      %w = func.call @outside(%v) : (f32) -> f32
      memref.store %w, %x[%begin] : memref<4xf32>
      return
    })",
              {{"k"}}, "the code calls 'outside', which nothing defines");
  // f64 has no expansion: the library's function would be needed.
  expectError(R"(
    func.func @k(%x: memref<4xf64>, %begin: index, %end: index) {
      %v = memref.load %x[%begin] : memref<4xf64>
      %w = math.exp %v : f64
      memref.store %w, %x[%begin] : memref<4xf64>
      return
    })",
              {{"k"}}, "the code calls 'exp', which nothing defines");
}

TEST_F(CompileModule, RefusesOtherSignatures) {
  expectError(kKernel, {{"thrice"}}, "defines no function @thrice");
  expectError("func.func private @k(memref<4xf32>, index, index)", {{"k"}},
              "defines no function @k");
  const char *kernelNeeds = "a kernel takes static 1-D memrefs";
  for (const char *args :
       {"%x: memref<?xf32>, %b: index, %e: index",
        "%x: memref<4x4xf32>, %b: index, %e: index",
        "%x: memref<4xf32>, %b: index", "%x: memref<4xf32>, %b: i64, %e: i64",
        "%x: memref<4xf32>, %n: i32, %b: index, %e: index"})
    expectError("func.func @k(" + std::string(args) + ") { return }", {{"k"}},
                kernelNeeds);
  expectError(kKernel, {{"twice", TableEntry::Kind::Host}},
              "a host function takes four !llvm.ptr and returns i32");
}

TEST_F(CompileModule, NamesWhatHasNoLowering) {
  expectError(R"(
    func.func @k(%x: memref<4xf32>, %begin: index, %end: index) {
      %t = tensor.empty() : tensor<4xf32>
      func.call @l(%t) : (tensor<4xf32>) -> ()
      return
    }
    func.func @l(%t: tensor<4xf32>) { return })",
              {{"k"}}, "op has no lowering to CPU code");
}

/// The parts of a large table are compiled apart, and find each other.
TEST_F(CompileModule, LinksParts) {
  std::string text;
  std::vector<TableEntry> entries;
  for (int i = 0; i < 11; ++i) {
    std::string name = "k" + std::to_string(i);
    text += "func.func @" + name +
            "(%x: memref<1xf32>, %begin: index, %end: index) {\n"
            "  %c0 = arith.constant 0 : index\n"
            "  %v = func.call @both(%x) : (memref<1xf32>) -> f32\n"
            "  %c = arith.constant " +
            std::to_string(i) +
            ".0 : f32\n"
            "  %w = arith.addf %v, %c : f32\n"
            "  memref.store %w, %x[%c0] : memref<1xf32>\n  return\n}\n";
    entries.push_back({name});
  }
  text += "func.func private @both(%x: memref<1xf32>) -> f32 {\n"
          "  %c0 = arith.constant 0 : index\n"
          "  %v = memref.load %x[%c0] : memref<1xf32>\n"
          "  %w = arith.addf %v, %v : f32\n  return %w : f32\n}\n";
  FailureOr<SmallVector<char, 0>> object = compile(text, entries);
  ASSERT_TRUE(succeeded(object)) << message;
  void *library = open(*object);
  ASSERT_TRUE(library) << dlerror();
  auto *table = tableOf(library);
  ASSERT_TRUE(table);
  ASSERT_EQ(table->num_entries, 11u);
  for (int i = 0; i < 11; ++i) {
    alignas(64) float x = 3;
    void *buffers[] = {&x};
    EXPECT_EQ(table->entries[i].name, "k" + std::to_string(i));
    reinterpret_cast<llm_kernel_fn>(table->entries[i].function)(buffers,
                                                                nullptr, 0, 1);
    EXPECT_EQ(x, 6.0f + static_cast<float>(i));
  }
  dlclose(library);
}
