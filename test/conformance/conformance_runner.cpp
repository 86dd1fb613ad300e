//===- conformance_runner.cpp - Compile and run many small models ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: conformance_runner LIST [JOBS [PROCESSOR]]
//
// Each line of LIST holds three paths, separated by tabs: a model (.onnx or
// .mlir), its inputs, and where its outputs go. Each model is imported, lowered
// along the generic path, compiled to a shared object, loaded and run, in a
// process of its own, so that a crash is one failure. One line per case goes to
// stdout as it ends: number, tab, status, tab, message; the status is ok,
// import, lower, run, crash or timeout. The message of ok says how much memory
// was live at once, and how much was allocated in all.
//
// Tensors are passed as a count (int64), then for each: element type (int64,
// the artifact's ElementType), rank, sizes, bytes (all int64), and the data.
//
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RTDialect.h"
#include "lib/Import/ONNX/Import.h"
#include "lib/Pipeline/Register.h"
#include "lib/Support/WeightData.h"
#include "lib/Target/CPU/CompileModule.h"
#include "llm/ABI/kernel.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Host/Passes.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <iostream>
#include <map>
#include <poll.h>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

namespace {

struct Tensor {
  int64_t type = 0;
  std::vector<int64_t> dims;
  std::string data;
};

/// What a case says when it ends.
struct Outcome {
  std::string status, message;
};

struct Case {
  std::string model, inputs, outputs;
};

constexpr int kSeconds = 120;
constexpr int64_t kMemory = int64_t{4} << 30;

/// The host of one call: counts what is allocated and refuses the rest.
struct Heap {
  std::map<void *, int64_t> blocks;
  int64_t used = 0, peak = 0, total = 0;
  std::string failure;

  static void *allocate(void *context, int64_t bytes) {
    auto &heap = *static_cast<Heap *>(context);
    if (bytes < 0 || bytes > kMemory - heap.used)
      return nullptr;
    void *pointer = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (pointer) {
      heap.blocks[pointer] = bytes;
      heap.used += bytes;
      heap.total += bytes;
      heap.peak = std::max(heap.peak, heap.used);
      // What a program reads before it writes is no zero by chance.
      std::memset(pointer, 0xcd, static_cast<size_t>(bytes));
    }
    return pointer;
  }
  static void release(void *context, void *pointer) {
    auto &heap = *static_cast<Heap *>(context);
    auto found = heap.blocks.find(pointer);
    if (found == heap.blocks.end()) {
      std::fprintf(stderr, "released what was not allocated\n");
      std::abort();
    }
    heap.used -= found->second;
    heap.blocks.erase(found);
    std::free(pointer);
  }
  static void fail(void *context, const char *message) {
    auto &heap = *static_cast<Heap *>(context);
    if (heap.failure.empty())
      heap.failure = message;
  }
};

bool readTensors(const std::string &path, std::vector<Tensor> &tensors) {
  std::ifstream file(path, std::ios::binary);
  auto number = [&] {
    int64_t value = 0;
    file.read(reinterpret_cast<char *>(&value), sizeof(value));
    return value;
  };
  tensors.resize(static_cast<size_t>(number()));
  for (Tensor &tensor : tensors) {
    tensor.type = number();
    tensor.dims.resize(static_cast<size_t>(number()));
    for (int64_t &dim : tensor.dims)
      dim = number();
    tensor.data.resize(static_cast<size_t>(number()));
    file.read(tensor.data.data(),
              static_cast<std::streamsize>(tensor.data.size()));
  }
  return static_cast<bool>(file);
}

void writeTensors(const std::string &path, const std::vector<Tensor> &tensors) {
  std::ofstream file(path, std::ios::binary);
  auto number = [&](int64_t value) {
    file.write(reinterpret_cast<const char *>(&value), sizeof(value));
  };
  number(static_cast<int64_t>(tensors.size()));
  for (const Tensor &tensor : tensors) {
    number(tensor.type);
    number(static_cast<int64_t>(tensor.dims.size()));
    for (int64_t dim : tensor.dims)
      number(dim);
    number(static_cast<int64_t>(tensor.data.size()));
    file.write(tensor.data.data(),
               static_cast<std::streamsize>(tensor.data.size()));
  }
}

/// Bits of an element of the artifact's ElementType.
int64_t bitsOf(int64_t type) {
  static constexpr int kBits[] = {0,  32, 16, 16, 64, 8, 8, 16, 16, 32, 32, 64,
                                  64, 8,  4,  4,  8,  8, 8, 8,  4,  8,  2,  2};
  return type > 0 && type < 24 ? kBits[type] : 0;
}

/// Loads a shared object from memory and finds its entry.
llm_host_fn load(ArrayRef<char> object, StringRef entry) {
  int fd = memfd_create("case", 0);
  if (fd < 0 || write(fd, object.data(), object.size()) !=
                    static_cast<ssize_t>(object.size()))
    return nullptr;
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return nullptr;
  auto *table = static_cast<const llm_kernel_table *>(
      dlsym(handle, LLM_KERNEL_TABLE_SYMBOL));
  for (uint32_t i = 0; table && i < table->num_entries; ++i)
    if (table->entries[i].name == entry)
      return reinterpret_cast<llm_host_fn>(table->entries[i].function);
  return nullptr;
}

/// The stored parts of a weight of `module`, each 64-byte aligned, as in an
/// artifact.
LogicalResult addParts(ModuleOp module, StringRef name,
                       std::vector<const void *> &constants) {
  auto weight = module.lookupSymbol<mlir::llm::WeightOp>(name);
  if (!weight)
    return module.emitError("no llm.weight is named ") << name;
  SmallVector<mlir::llm::ComponentAttr> parts;
  weight.getFormat().getParts(parts);
  for (mlir::llm::ComponentAttr part : parts) {
    auto data =
        ::llm::WeightData::open(part, [&] { return weight.emitError(); });
    if (failed(data))
      return failure();
    size_t size = data->bytes().size();
    void *copy = std::aligned_alloc(64, size / 64 * 64 + 64);
    std::memcpy(copy, data->bytes().data(), size);
    constants.push_back(copy);
  }
  return success();
}

Outcome runCase(const Case &job, StringRef processor) {
  DialectRegistry registry;
  ::llm::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module =
      StringRef(job.model).ends_with(".mlir")
          ? parseSourceFile<ModuleOp>(job.model, &context)
          : ::llm::importONNX(job.model, context);
  if (!module)
    return {"import", diagnostics};
  OwningOpRef<ModuleOp> lowered = module->clone();
  PassManager pm(&context);
  mlir::llm::buildHostFunctionPipeline(pm);
  if (failed(pm.run(*lowered)))
    return {"lower", diagnostics};
  auto host = *lowered->getOps<rt::HostFunctionOp>().begin();
  auto code = lowered->lookupSymbol<ModuleOp>(host.getCode());
  std::string error;
  auto target = ::llm::CPUTarget::get(processor, error);
  if (failed(target))
    return {"lower", error};
  auto object = ::llm::compileToSharedObject(
      code, *target, {{host.getEntry().str(), ::llm::TableEntry::Kind::Host}});
  if (failed(object))
    return {"lower", diagnostics};
  llm_host_fn function = load(*object, host.getEntry());
  if (!function)
    return {"lower", "the object does not load"};

  std::vector<Tensor> inputs;
  if (!readTensors(job.inputs, inputs))
    return {"run", "the inputs cannot be read"};
  std::vector<const void *> constants;
  for (auto name : host.getConstants().getAsRange<StringAttr>()) {
    if (failed(addParts(*module, name.getValue(), constants)))
      return {"run", diagnostics};
  }
  if (inputs.size() != host.getInputNames().size())
    return {"run", "takes " + std::to_string(host.getInputNames().size()) +
                       " inputs, not " + std::to_string(inputs.size())};
  std::vector<llm_tensor> arguments, results(host.getOutputNames().size());
  for (Tensor &input : inputs)
    arguments.push_back({input.data.data(),
                         static_cast<int64_t>(input.dims.size()),
                         input.dims.data(), static_cast<int32_t>(input.type)});
  std::vector<Tensor> before = inputs;
  Heap heap;
  llm_host table{&heap, Heap::allocate, Heap::release, Heap::fail};
  int32_t status =
      function(&table, arguments.data(), results.data(), constants.data());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].data != before[i].data)
      return {"run", "input " + std::to_string(i) + " was changed"};
  if (status != 0)
    return {"run", heap.failure};
  std::vector<Tensor> outputs;
  std::set<void *> owned;
  for (llm_tensor &result : results) {
    Tensor output;
    output.type = result.element_type;
    output.dims.assign(result.dims, result.dims + result.rank);
    int64_t bits = bitsOf(output.type);
    for (int64_t dim : output.dims)
      bits *= dim;
    output.data.assign(static_cast<char *>(result.data),
                       static_cast<size_t>((bits + 7) / 8));
    outputs.push_back(std::move(output));
    if (!heap.blocks.count(result.data) || !owned.insert(result.data).second ||
        !owned.insert(result.dims).second)
      return {"run", "an output is not owned by the host, or twice"};
  }
  for (void *pointer : owned)
    Heap::release(&heap, pointer);
  if (!heap.blocks.empty())
    return {"run",
            std::to_string(heap.blocks.size()) + " blocks were not released"};
  writeTensors(job.outputs, outputs);
  return {"ok", "peak " + std::to_string(heap.peak) + " of " +
                    std::to_string(heap.total) + " bytes"};
}

/// A case that runs in a child process.
struct Child {
  size_t index;
  pid_t pid;
  int pipe;
  std::string said;
};

Child start(size_t index, const Case &job, StringRef processor) {
  int ends[2];
  if (pipe(ends) != 0)
    std::exit(3);
  std::cout.flush();
  pid_t pid = fork();
  if (pid < 0)
    std::exit(3);
  if (pid == 0) {
    close(ends[0]);
    alarm(kSeconds);
    Outcome outcome = runCase(job, processor);
    std::string text = outcome.status + "\t" + outcome.message;
    if (write(ends[1], text.data(), text.size()) < 0)
      _exit(3);
    _exit(0);
  }
  close(ends[1]);
  return {index, pid, ends[0], ""};
}

void finish(Child &child) {
  close(child.pipe);
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (WIFSIGNALED(status))
    child.said = WTERMSIG(status) == SIGALRM
                     ? "timeout\t"
                     : std::string("crash\t") + strsignal(WTERMSIG(status));
  else if (child.said.empty())
    child.said = "crash\tended without a result";
  std::replace(child.said.begin(), child.said.end(), '\n', ' ');
  std::cout << child.index << '\t' << child.said << std::endl;
}

} // namespace

int main(int argc, char **argv) {
  unsigned jobs = 2;
  if (argc < 2 || argc > 4 ||
      (argc > 2 && (!llvm::to_integer(argv[2], jobs, 10) || !jobs))) {
    std::cerr << "usage: conformance_runner LIST [JOBS [PROCESSOR]]\n";
    return 2;
  }
  std::vector<Case> cases;
  std::ifstream list(argv[1]);
  for (std::string line; std::getline(list, line);) {
    std::istringstream fields(line);
    Case job;
    std::getline(fields, job.model, '\t');
    std::getline(fields, job.inputs, '\t');
    std::getline(fields, job.outputs, '\t');
    cases.push_back(job);
  }
  StringRef processor = argc > 3 ? argv[3] : "x86-64-v3";
  std::vector<Child> running;
  for (size_t next = 0; next < cases.size() || !running.empty();) {
    while (next < cases.size() && running.size() < jobs) {
      running.push_back(start(next, cases[next], processor));
      ++next;
    }
    std::vector<pollfd> polls;
    for (Child &child : running)
      polls.push_back({child.pipe, POLLIN, 0});
    poll(polls.data(), polls.size(), -1);
    for (size_t i = running.size(); i-- > 0;) {
      if (!polls[i].revents)
        continue;
      char buffer[4096];
      ssize_t count = read(running[i].pipe, buffer, sizeof(buffer));
      if (count > 0) {
        running[i].said.append(buffer, static_cast<size_t>(count));
        continue;
      }
      finish(running[i]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return 0;
}
