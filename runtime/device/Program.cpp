//===- Program.cpp - A program of an artifact, ready to run -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Program.h"

#include "runtime/artifact/ElementTypes.h"
#include "runtime/core/Expr.h"

#include <algorithm>
#include <optional>

namespace llm::runtime {

namespace {
constexpr std::array<std::string_view, Symbols::count> symbolNames{
    "T", "S", "R", "P", "B", "C"};
/// Plans kept per program: decoding uses one, prefill of many prompts several.
constexpr size_t maxPlans = 32;
constexpr int64_t bufferAlignment = 64;

bool matches(const artifact::Variant &variant,
             std::span<const int64_t> values) {
  return std::all_of(variant.ranges().begin(), variant.ranges().end(),
                     [&](const artifact::Range &range) {
                       int64_t value = values[range.symbol()];
                       return range.low() <= value && value <= range.high();
                     });
}
/// Whether `writer` writes memory that `other` reads or writes.
bool writesInto(const DispatchCall &writer, const DispatchCall &other) {
  auto address = [](const DispatchCall &call, size_t i) {
    return reinterpret_cast<uintptr_t>(call.buffers[i]);
  };
  for (size_t i = writer.dispatch->num_reads(); i < writer.buffers.size(); ++i)
    for (size_t j = 0; j < other.buffers.size(); ++j)
      if (address(writer, i) < address(other, j) + other.bytes[j] &&
          address(other, j) < address(writer, i) + writer.bytes[i])
        return true;
  return false;
}
} // namespace

std::string Symbols::toString() const {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(symbolNames[i]) + "=" +
            std::to_string(values[i]);
  return text;
}

Expected<const void *> CodeLoader::find(uint32_t payload,
                                        const std::string &entry) {
  std::unique_ptr<CodeObject> &object = objects[payload];
  if (!object) {
    const artifact::Payload &description =
        artifact->manifest().payloads(static_cast<int>(payload));
    auto loaded = device.load(description, artifact->payload(payload))
                      .withContext("code '" + description.name() + "'");
    if (!loaded)
      return loaded.takeStatus();
    object = *std::move(loaded);
  }
  const void *function = object->find(entry);
  if (!function)
    return Status::invalidInput("the code has no entry '" + entry + "'");
  return function;
}

Expected<std::unique_ptr<Program>>
Program::load(std::shared_ptr<const Artifact> artifact, int index,
              CodeLoader &code) {
  const artifact::Manifest &manifest = artifact->manifest();
  const artifact::Program &description = manifest.programs(index);
  std::unique_ptr<Program> result(
      new Program(std::move(artifact), description));
  for (const std::string &name : description.symbols()) {
    auto found = std::find(symbolNames.begin(), symbolNames.end(), name);
    if (found == symbolNames.end())
      return Status::unsupported("program '" + description.name() +
                                 "' has the symbol '" + name +
                                 "', which this runtime does not know");
    result->symbolIndex.push_back(
        static_cast<Symbols::Index>(found - symbolNames.begin()));
  }
  for (const artifact::Kernel &kernel : description.kernels()) {
    std::vector<const void *> &variants = result->functions.emplace_back();
    Status missing;
    // The first code object that runs here has variants for all sizes; what
    // follows is for other machines and is not loaded.
    std::optional<uint32_t> chosen;
    for (const artifact::Variant &variant : kernel.variants()) {
      const void *&function = variants.emplace_back(nullptr);
      if (!chosen) {
        Status supported = code.getDevice().supports(
            manifest.payloads(static_cast<int>(variant.code())));
        if (!supported) {
          missing = std::move(supported);
          continue;
        }
        chosen = variant.code();
      }
      if (variant.code() == *chosen) {
        LLM_ASSIGN_OR_RETURN(function,
                             code.find(variant.code(), variant.entry()));
      }
    }
    if (!chosen)
      return std::move(missing).withContext("kernel '" + kernel.name() + "'");
  }
  return result;
}

std::vector<int64_t> Program::programSymbols(const Symbols &symbols) const {
  std::vector<int64_t> values;
  values.reserve(symbolIndex.size());
  for (Symbols::Index index : symbolIndex)
    values.push_back(symbols[index]);
  return values;
}

Expected<int64_t> Program::arenaBytes(const Symbols &symbols) const {
  if (program.arena_bytes().nodes_size() == 0)
    return int64_t(0);
  return evaluateExpr(program.arena_bytes(), programSymbols(symbols))
      .withContext("arena");
}

Expected<int64_t> Program::bufferElements(int index,
                                          const Symbols &symbols) const {
  return evaluateExpr(program.buffers(index).elements(),
                      programSymbols(symbols));
}

Status
Program::bind(BufferRef arenaMemory,
              const std::function<Expected<BufferRef>(const artifact::Buffer &)>
                  &lookup) {
  arena = arenaMemory;
  bound.clear();
  plans.clear();
  for (const artifact::Buffer &buffer : program.buffers()) {
    BufferRef ref;
    switch (buffer.lifetime()) {
    case artifact::Buffer::CONSTANT: {
      std::span<const std::byte> bytes = artifact->weight(buffer.weight());
      // Kernels only read constants: the verifier allows no write to them.
      ref = {const_cast<std::byte *>(bytes.data()), bytes.size()};
      break;
    }
    case artifact::Buffer::STATE:
    case artifact::Buffer::IO: {
      LLM_ASSIGN_OR_RETURN(ref, lookup(buffer));
      break;
    }
    default:
      break;
    }
    bound.push_back(ref);
  }
  return Status::success();
}

Expected<const Plan *> Program::plan(const Symbols &symbols) {
  for (const std::unique_ptr<Plan> &plan : plans)
    if (plan->key == symbols)
      return plan.get();
  auto plan = std::make_unique<Plan>();
  plan->key = symbols;
  LLM_RETURN_IF_ERROR(resolve(*plan).withContext("program '" + program.name() +
                                                 "' at " + symbols.toString()));
  if (plans.size() < maxPlans) {
    plans.push_back(std::move(plan));
    return plans.back().get();
  }
  nextVictim = (nextVictim + 1) % maxPlans;
  plans[nextVictim] = std::move(plan);
  return plans[nextVictim].get();
}

Status Program::resolve(Plan &plan) const {
  std::vector<int64_t> values = programSymbols(plan.key);
  std::vector<BufferRef> refs;
  std::vector<int64_t> elements;
  for (int i = 0; i < program.buffers_size(); ++i) {
    const artifact::Buffer &buffer = program.buffers(i);
    std::string where =
        "buffer " + std::to_string(i) + " '" + buffer.name() + "'";
    auto size = evaluateExpr(buffer.elements(), values).withContext(where);
    if (!size)
      return size.takeStatus();
    elements.push_back(*size);
    BufferRef ref = bound[static_cast<size_t>(i)];
    if (buffer.lifetime() != artifact::Buffer::CONSTANT) {
      std::optional<uint64_t> bytes =
          elementBytes(buffer.element_type(), *size);
      if (!bytes)
        return Status::invalidInput(where + ": its size overflows");
      if (buffer.lifetime() == artifact::Buffer::TRANSIENT) {
        auto offset =
            evaluateExpr(buffer.arena_offset(), values).withContext(where);
        if (!offset)
          return offset.takeStatus();
        if (static_cast<uint64_t>(*offset) > arena.bytes ||
            *bytes > arena.bytes - static_cast<uint64_t>(*offset))
          return Status::invalidInput(where + ": it does not lie in the arena");
        if (*offset % bufferAlignment != 0)
          return Status::invalidInput(where + ": its offset is not a multiple "
                                              "of 64");
        ref.data = static_cast<std::byte *>(arena.data) + *offset;
      } else if (*bytes > ref.bytes) {
        return Status::invalidInput(
            where + ": it has " + std::to_string(*bytes) + " bytes, " +
            std::to_string(ref.bytes) + " are bound to it");
      }
      ref.bytes = *bytes;
    }
    refs.push_back(ref);
  }

  size_t numBuffers = 0, numSizes = 0;
  for (const artifact::Dispatch &dispatch : program.dispatches()) {
    numBuffers += static_cast<size_t>(dispatch.buffers_size());
    numSizes += static_cast<size_t>(dispatch.sizes_size());
  }
  // The calls hold spans of these: they must not move.
  plan.buffers.reserve(numBuffers);
  plan.bytes.reserve(numBuffers);
  plan.sizes.reserve(numSizes);
  size_t phaseStart = 0;
  for (int i = 0; i < program.dispatches_size(); ++i) {
    if (!program.dispatches(i).concurrent())
      phaseStart = plan.list.size();
    LLM_RETURN_IF_ERROR(resolveDispatch(program.dispatches(i), refs, elements,
                                        values, phaseStart, plan)
                            .withContext("dispatch " + std::to_string(i)));
  }
  return Status::success();
}

Status Program::resolveDispatch(const artifact::Dispatch &dispatch,
                                std::span<const BufferRef> refs,
                                std::span<const int64_t> elements,
                                std::span<const int64_t> values,
                                size_t phaseStart, Plan &plan) const {
  const artifact::Kernel &kernel =
      program.kernels(static_cast<int>(dispatch.kernel()));
  LLM_ASSIGN_OR_RETURN(int64_t grid, evaluateExpr(dispatch.grid(), values));
  bool writes = false;
  for (int i = static_cast<int>(dispatch.num_reads());
       i < dispatch.buffers_size(); ++i)
    writes |= elements[dispatch.buffers(i)] > 0;
  if (grid == 0 || !writes)
    return Status::success();

  DispatchCall call;
  call.kernel = &kernel;
  call.dispatch = &dispatch;
  call.grid = grid;
  const std::vector<const void *> &candidates = functions[dispatch.kernel()];
  for (int i = 0; i < kernel.variants_size() && !call.function; ++i) {
    if (!candidates[static_cast<size_t>(i)] ||
        !matches(kernel.variants(i), values))
      continue;
    call.variant = &kernel.variants(i);
    call.function = candidates[static_cast<size_t>(i)];
  }
  if (!call.function)
    return Status::invalidInput("no variant of kernel '" + kernel.name() +
                                "' covers these sizes on this machine");

  size_t firstBuffer = plan.buffers.size(), firstSize = plan.sizes.size();
  for (uint32_t buffer : dispatch.buffers()) {
    plan.buffers.push_back(refs[buffer].data);
    plan.bytes.push_back(refs[buffer].bytes);
  }
  for (const artifact::Expr &size : dispatch.sizes()) {
    LLM_ASSIGN_OR_RETURN(int64_t value, evaluateExpr(size, values));
    plan.sizes.push_back(value);
  }
  call.buffers = std::span(plan.buffers).subspan(firstBuffer);
  call.bytes = std::span(plan.bytes).subspan(firstBuffer);
  call.sizes = std::span(plan.sizes).subspan(firstSize);
  call.concurrent = phaseStart < plan.list.size();
  for (size_t i = phaseStart; i < plan.list.size(); ++i)
    if (writesInto(call, plan.list[i]) || writesInto(plan.list[i], call))
      return Status::invalidInput("it is concurrent with a dispatch that it "
                                  "shares written memory with");
  plan.list.push_back(call);
  return Status::success();
}

} // namespace llm::runtime
