//===- Harness.cpp - Generate, compile, load and call one kernel ----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Harness.h"

#include "dialects/RT/IR/RTDialect.h"
#include "lib/Pipeline/Register.h"
#include "lib/Target/CPU/CompileModule.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Kernels/Layouts.h"
#include "passes/Kernels/Passes.h"
#include "runtime/core/CPUFeatures.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace llm::test {

[[noreturn]] static void fatal(const std::string &message) {
  fprintf(stderr, "%s\n", message.c_str());
  abort();
}

static MLIRContext &context() {
  static MLIRContext *shared = [] {
    DialectRegistry registry;
    registerDialects(registry);
    auto *made = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *shared;
}

CompiledKernel::CompiledKernel(const std::string &family,
                               const std::string &params,
                               const std::string &mcpu) {
  std::string text = "rt.program @p target \"cpu\" symbols [\"T\"] {\n"
                     "rt.kernel @k family \"" +
                     family + "\" params " + params + " {}\n}";
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context()));
  if (!module)
    fatal("cannot parse: " + text);
  PassManager pm(&context());
  mlir::llm::GenerateKernelsPassOptions options;
  options.mcpus = {mcpu};
  pm.addPass(mlir::llm::createGenerateKernelsPass(options));
  if (failed(pm.run(*module)))
    fatal("cannot generate: " + text);
  auto code = cast<ModuleOp>(SymbolTable::lookupSymbolIn(*module, "cpu"));
  FailureOr<CPUTarget> target = CPUTarget::of(code);
  std::vector<TableEntry> entries;
  module->walk([&](rt::VariantOp variant) {
    entries.push_back({variant.getEntry().str(), TableEntry::Kind::Kernel});
  });
  auto object = compileToSharedObject(code, *target, entries);
  if (failed(object))
    fatal("cannot compile: " + text);

  // Stays open while the library does: dlopen knows libraries by path.
  fd = memfd_create("kernel", MFD_CLOEXEC);
  if (fd < 0 || write(fd, object->data(), object->size()) !=
                    static_cast<ssize_t>(object->size()))
    fatal("cannot write the code object");
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fatal(dlerror());
  auto *table = static_cast<const llm_kernel_table *>(
      dlsym(library, LLM_KERNEL_TABLE_SYMBOL));
  if (!table || table->abi_version != LLM_KERNEL_ABI_VERSION ||
      table->num_entries != entries.size())
    fatal("bad kernel table");
  size_t i = 0;
  module->walk([&](rt::VariantOp variant) {
    if (variant.getEntry() != table->entries[i].name)
      fatal("entries out of order");
    Variant made{reinterpret_cast<llm_kernel_fn>(table->entries[i++].function),
                 0, INT64_MAX};
    if (auto ranges = variant.getRanges())
      for (auto range : ranges->getAsRange<rt::RangeAttr>()) {
        made.low = range.getLow();
        made.high = range.getHigh() == -1 ? INT64_MAX : range.getHigh();
      }
    variants.push_back(made);
  });
}

CompiledKernel::~CompiledKernel() {
  dlclose(library);
  close(fd);
}

bool CompiledKernel::accepts(size_t index, int64_t rows) const {
  return variants[index].low <= rows && rows <= variants[index].high;
}

void CompiledKernel::callVariant(size_t variant,
                                 const std::vector<const void *> &buffers,
                                 const std::vector<int64_t> &sizes,
                                 int64_t begin, int64_t end) const {
  std::vector<void *> pointers;
  for (const void *buffer : buffers)
    pointers.push_back(const_cast<void *>(buffer));
  variants[variant].function(pointers.data(), sizes.data(), begin, end);
}

void CompiledKernel::call(int64_t rows,
                          const std::vector<const void *> &buffers,
                          const std::vector<int64_t> &sizes, int64_t begin,
                          int64_t end) const {
  for (size_t i = 0; i < variants.size(); ++i)
    if (accepts(i, rows))
      return callVariant(i, buffers, sizes, begin, end);
  fatal("no variant for " + std::to_string(rows) + " rows");
}

int64_t layoutBytes(const std::string &layout) {
  auto dict =
      dyn_cast_or_null<DictionaryAttr>(parseAttribute(layout, &context()));
  if (!dict)
    fatal("cannot parse: " + layout);
  return mlir::llm::packedSize(dict);
}

std::optional<Buffer<uint8_t>> tryPack(const std::string &weight,
                                       const std::string &layout) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(weight, ParserConfig(&context()));
  auto dict =
      dyn_cast_or_null<DictionaryAttr>(parseAttribute(layout, &context()));
  if (!module || !dict)
    fatal("cannot parse: " + layout);
  auto op = *module->getOps<mlir::llm::WeightOp>().begin();
  Buffer<uint8_t> bytes(mlir::llm::packedSize(dict), 0x5a);
  if (failed(mlir::llm::packWeight(
          op, dict,
          MutableArrayRef(reinterpret_cast<char *>(bytes.data()),
                          bytes.size()))))
    return std::nullopt;
  EXPECT_TRUE(bytes.intact());
  return bytes;
}

Buffer<uint8_t> pack(const std::string &weight, const std::string &layout) {
  std::optional<Buffer<uint8_t>> bytes = tryPack(weight, layout);
  if (!bytes)
    fatal("cannot pack: " + layout);
  return *bytes;
}

uint16_t roundToBF16(float value) {
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

static const llvm::fltSemantics &semanticsOf(const std::string &type) {
  return type == "f8E5M2" ? llvm::APFloat::Float8E5M2()
                          : llvm::APFloat::Float8E4M3FN();
}

uint8_t roundToF8(const std::string &type, float value) {
  const llvm::fltSemantics &semantics = semanticsOf(type);
  llvm::APFloat largest = llvm::APFloat::getLargest(semantics, value < 0);
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  if (!number.isFinite() && value == value)
    number = largest;
  return static_cast<uint8_t>(number.bitcastToAPInt().getZExtValue());
}

float fromF8(const std::string &type, uint8_t code) {
  llvm::APFloat number(semanticsOf(type), llvm::APInt(8, code));
  bool losesInfo;
  number.convert(llvm::APFloat::IEEEsingle(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToFloat();
}

GuardedMemory::GuardedMemory(size_t bytes) : bytes(bytes) {
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t inner = (bytes + page - 1) / page * page;
  mapped = inner + 2 * page;
  mapping =
      mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    fatal("no memory for a buffer");
  unsigned char *first = static_cast<unsigned char *>(mapping) + page;
  if (inner && mprotect(first, inner, PROT_READ | PROT_WRITE))
    fatal("no memory for a buffer");
  start = first + (inner - bytes);
}

GuardedMemory::GuardedMemory(const GuardedMemory &other)
    : GuardedMemory(other.bytes) {
  std::copy(other.start, other.start + bytes, start);
}

GuardedMemory::~GuardedMemory() {
  if (mapping)
    munmap(mapping, mapped);
}

bool hasFeature(const std::string &cpu, const std::string &feature) {
  std::string error;
  FailureOr<CPUTarget> target = CPUTarget::get(cpu, error);
  if (failed(target))
    fatal(error);
  return target->has(feature);
}

std::vector<std::string> testedCPUs() {
  std::string error, which;
  if (const char *chosen = getenv("LLM_TEST_CPUS"))
    which = chosen;
  std::vector<const char *> levels{"x86-64-v3", "x86-64"};
  if (which == "all")
    levels = {"znver4", "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"};
  if (which == "native")
    levels.clear();
  FailureOr<CPUTarget> host = CPUTarget::get("native", error);
  if (failed(host))
    fatal(error);
  std::vector<std::string> cpus{"native"};
  for (const char *level : levels) {
    FailureOr<CPUTarget> target = CPUTarget::get(level, error);
    if (failed(target))
      fatal(error);
    if (target->features != host->features &&
        ::llm::runtime::missingCpuFeatures(target->features).empty())
      cpus.emplace_back(level);
  }
  return cpus;
}

} // namespace llm::test
