//===- HostFunction.cpp - Running a whole graph as one function ------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/HostFunction.h"

#include "llm/ABI/kernel.h"
#include "runtime/artifact/ElementTypes.h"
#include "runtime/core/Limits.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace llm::runtime {

namespace {

constexpr size_t alignment = 64;
constexpr int64_t maxRank = 32;

/// What a call has allocated: freed at its end, whatever the function forgot.
class Heap {
public:
  explicit Heap(uint64_t budget) : budget(budget) {}
  ~Heap() {
    for (auto &[pointer, bytes] : blocks)
      std::free(pointer);
  }

  llm_host host() {
    return {this,
            [](void *context, int64_t bytes) {
              return static_cast<Heap *>(context)->allocate(bytes);
            },
            [](void *context, void *pointer) {
              static_cast<Heap *>(context)->release(pointer);
            },
            [](void *context, const char *message) {
              static_cast<Heap *>(context)->fail(message);
            }};
  }

  /// Bytes of the block that starts at `pointer`; nothing for another pointer.
  std::optional<uint64_t> size(const void *pointer) {
    auto found = blocks.find(const_cast<void *>(pointer));
    if (found == blocks.end())
      return std::nullopt;
    return found->second;
  }
  bool outOfMemory() const { return refused; }
  const std::string &message() const { return failure; }

private:
  void *allocate(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    if (bytes < 0 || static_cast<uint64_t>(bytes) > budget - used) {
      refused = true;
      return nullptr;
    }
    // An empty tensor has an address too.
    size_t rounded =
        (std::max<size_t>(static_cast<size_t>(bytes), 1) + alignment - 1) /
        alignment * alignment;
    void *pointer = std::aligned_alloc(alignment, rounded);
    if (!pointer) {
      refused = true;
      return nullptr;
    }
    blocks.emplace(pointer, static_cast<uint64_t>(bytes));
    used += static_cast<uint64_t>(bytes);
    return pointer;
  }
  void release(void *pointer) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = blocks.find(pointer);
    if (found == blocks.end())
      return;
    used -= found->second;
    std::free(pointer);
    blocks.erase(found);
  }
  void fail(const char *message) {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure.empty())
      failure = message ? message : "no message";
  }

  std::mutex mutex;
  uint64_t budget;
  uint64_t used = 0;
  bool refused = false;
  std::string failure;
  std::unordered_map<void *, uint64_t> blocks;
};

/// Copies an output out of the heap after checking that it lies there.
Expected<HostTensor> takeOutput(Heap &heap, const llm_tensor &tensor) {
  HostTensor result;
  result.type = static_cast<artifact::ElementType>(tensor.element_type);
  if (tensor.rank < 0 || tensor.rank > maxRank)
    return Status::internal("it has rank " + std::to_string(tensor.rank));
  if (tensor.rank > 0) {
    std::optional<uint64_t> bytes = heap.size(tensor.dims);
    if (!bytes || *bytes < static_cast<uint64_t>(tensor.rank) * 8)
      return Status::internal("its dimensions were not allocated");
    result.dims.assign(tensor.dims, tensor.dims + tensor.rank);
  }
  LLM_ASSIGN_OR_RETURN(int64_t count, elementCount(result.dims));
  std::optional<uint64_t> needed = elementBytes(result.type, count);
  if (!needed)
    return Status::internal("its size overflows");
  if (*needed > 0) {
    std::optional<uint64_t> bytes = heap.size(tensor.data);
    if (!bytes || *bytes < *needed)
      return Status::internal("its data was not allocated");
    const auto *data = static_cast<const std::byte *>(tensor.data);
    result.data.assign(data, data + *needed);
  }
  return result;
}

} // namespace

Expected<std::unique_ptr<HostFunction>>
HostFunction::load(std::shared_ptr<const Artifact> artifact, int index,
                   uint64_t memory) {
  std::unique_ptr<HostFunction> result(
      new HostFunction(std::move(artifact), index));
  const artifact::Manifest &manifest = result->artifact->manifest();
  uint64_t weights = 0;
  for (const artifact::Payload &payload : manifest.payloads())
    weights += payload.size();
  uint64_t limit = memory ? memory : memoryLimit();
  if (weights > limit)
    return Status::resource("not enough memory: the artifact has " +
                            formatSize(weights) + ", " + formatSize(limit) +
                            " are allowed");
  result->budget = limit - weights;
  const artifact::HostFunction &description = result->description();
  const artifact::Payload &payload =
      manifest.payloads(static_cast<int>(description.code()));
  LLM_ASSIGN_OR_RETURN(result->device, createDevice(payload.target(), 1));
  LLM_RETURN_IF_ERROR(result->device->supports(payload));
  result->code =
      std::make_unique<CodeLoader>(result->artifact, *result->device);
  LLM_ASSIGN_OR_RETURN(
      result->function,
      result->code->find(description.code(), description.entry()));
  return result;
}

Status HostFunction::checkShape(const artifact::TensorInfo &info,
                                const HostTensor &tensor,
                                std::map<std::string, int64_t> &symbols) const {
  if (tensor.type != info.element_type())
    return Status::invalidInput("it is " + tensor.describe() +
                                ", the model takes elements of type " +
                                std::string(elementName(info.element_type())));
  if (static_cast<int>(tensor.dims.size()) != info.dims_size())
    return Status::invalidInput(
        "it is " + tensor.describe() + ", the model takes " +
        std::to_string(info.dims_size()) + " dimensions");
  for (int i = 0; i < info.dims_size(); ++i) {
    const artifact::Dim &dim = info.dims(i);
    int64_t size = tensor.dims[static_cast<size_t>(i)];
    int64_t wanted = dim.size();
    if (wanted < 0) {
      if (dim.symbol().empty())
        continue;
      wanted = symbols.emplace(dim.symbol(), size).first->second;
    }
    if (size != wanted)
      return Status::invalidInput(
          "it is " + tensor.describe() + ", dimension " + std::to_string(i) +
          (dim.size() < 0 ? " ('" + dim.symbol() + "')" : "") + " must be " +
          std::to_string(wanted));
  }
  return Status::success();
}

Expected<std::vector<HostTensor>>
HostFunction::run(std::span<const HostTensor> inputs) {
  const artifact::HostFunction &info = description();
  if (static_cast<int>(inputs.size()) != info.inputs_size())
    return Status::invalidInput(
        "the model takes " + std::to_string(info.inputs_size()) + " inputs, " +
        std::to_string(inputs.size()) + " are given");
  std::map<std::string, int64_t> symbols;
  Heap heap(budget);
  llm_host host = heap.host();
  std::vector<llm_tensor> arguments(inputs.size());
  std::vector<std::vector<int64_t>> dims(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const HostTensor &input = inputs[i];
    const artifact::TensorInfo &tensor = info.inputs(static_cast<int>(i));
    LLM_RETURN_IF_ERROR(checkShape(tensor, input, symbols)
                            .withContext("input '" + tensor.name() + "'"));
    // Copied: kernels rely on the alignment, and may not change the caller's.
    void *data = host.allocate(&heap, static_cast<int64_t>(input.data.size()));
    if (!data)
      return Status::resource("the inputs do not fit in the memory allowed");
    if (!input.data.empty())
      std::memcpy(data, input.data.data(), input.data.size());
    dims[i] = input.dims;
    arguments[i] = {data, static_cast<int64_t>(dims[i].size()), dims[i].data(),
                    static_cast<int32_t>(input.type)};
  }
  std::vector<const void *> constants;
  for (uint32_t weight : info.constants())
    constants.push_back(artifact->weight(weight).data());
  std::vector<llm_tensor> outputs(static_cast<size_t>(info.outputs_size()),
                                  llm_tensor{});
  for (int i = 0; i < info.outputs_size(); ++i)
    outputs[static_cast<size_t>(i)].element_type =
        static_cast<int32_t>(info.outputs(i).element_type());

  auto call = reinterpret_cast<llm_host_fn>(const_cast<void *>(function));
  int32_t result =
      call(&host, arguments.data(), outputs.data(), constants.data());
  if (result != 0 && heap.outOfMemory())
    return Status::resource("the model needs more memory than the " +
                            formatSize(budget) + " that are left (--memory)");
  if (result != 0)
    return Status::invalidInput(heap.message().empty()
                                    ? "the model's function failed"
                                    : heap.message());
  std::vector<HostTensor> results;
  for (int i = 0; i < info.outputs_size(); ++i) {
    std::string where = "output '" + info.outputs(i).name() + "'";
    auto taken = takeOutput(heap, outputs[static_cast<size_t>(i)]);
    if (!taken)
      return taken.takeStatus().withContext(where);
    results.push_back(*std::move(taken));
  }
  return results;
}

} // namespace llm::runtime
