//===- ManifestBuilder.cpp - From the rt dialect to a manifest ---*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Artifact/Artifact.h"

#include "dialects/KV/IR/KVDialect.h"
#include "dialects/LLM/IR/LLMDialect.h"
#include "llm/ABI/kernel.h"
#include "llm/ABI/step.h"
#include "passes/Kernels/Layouts.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ::llm;

namespace {

/// Bytes of an artifact's process that are neither weights, arena nor pages:
/// program text, libraries, stacks of the worker threads, the tokenizer's
/// tables, protobuf's copy of the manifest. Measured on llm-run (see
/// docs/rationale/memory.md) and rounded up; code objects and the tokenizer
/// come on top.
constexpr uint64_t kFixedBytes = 24u << 20;
/// Tables that a tokenizer builds, per byte of its sealed form.
constexpr uint64_t kTokenizerFactor = 8;

void setExpr(artifact::Expr &out, rt::ExprAttr expr,
             const llvm::StringMap<uint32_t> &symbols) {
  using rt::ExprKind;
  if (expr.getKind() == ExprKind::constant) {
    artifact::Expr::Node *node = out.add_nodes();
    node->set_op(artifact::Expr::CONSTANT);
    node->set_value(expr.getValue());
    return;
  }
  if (expr.getKind() == ExprKind::symbol) {
    artifact::Expr::Node *node = out.add_nodes();
    node->set_op(artifact::Expr::SYMBOL);
    node->set_value(symbols.lookup(expr.getSymbol()));
    return;
  }
  setExpr(out, expr.getLeft(), symbols);
  setExpr(out, expr.getRight(), symbols);
  auto op = [&] {
    switch (expr.getKind()) {
    case ExprKind::add:
      return artifact::Expr::ADD;
    case ExprKind::mul:
      return artifact::Expr::MUL;
    case ExprKind::ceildiv:
      return artifact::Expr::CEIL_DIV;
    case ExprKind::min:
      return artifact::Expr::MIN;
    default:
      return artifact::Expr::MAX;
    }
  };
  out.add_nodes()->set_op(op());
}

/// The ONNX node in a location: its innermost name.
std::string nodeName(Location loc) {
  std::string name;
  loc->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner)) {
      name = named.getName().str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return name;
}

class ManifestBuilder {
public:
  ManifestBuilder(ModuleOp module, const ArtifactInputs &inputs)
      : module(module), inputs(inputs) {}

  FailureOr<artifact::Manifest> build() {
    manifest.set_step_abi(LLM_STEP_ABI_VERSION);
    manifest.set_kernel_abi(LLM_KERNEL_ABI_VERSION);
    manifest.set_compiler(inputs.compilerVersion);
    manifest.set_recipe(inputs.recipe);
    addSource();
    addPayloads();
    llvm::StringMap<uint32_t> programs;
    for (auto program : module.getOps<rt::ProgramOp>()) {
      programs[program.getSymName()] = manifest.programs_size();
      if (failed(addProgram(program)))
        return failure();
    }
    for (auto function : module.getOps<rt::HostFunctionOp>())
      if (failed(addHostFunction(function)))
        return failure();
    for (auto iteration : module.getOps<rt::IterationOp>())
      if (failed(addIteration(iteration, programs)))
        return failure();
    if (manifest.programs_size() == 0 && manifest.host_functions_size() == 0)
      return module.emitError("nothing to seal: the module has neither an "
                              "rt.program nor an rt.host_function"),
             failure();
    finish();
    return std::move(manifest);
  }

private:
  void addSource() {
    auto source = module->getAttrOfType<DictionaryAttr>(mlir::llm::kSourceAttr);
    if (!source)
      return;
    auto text = [&](StringRef key) -> std::string {
      auto value = source.getAs<StringAttr>(key);
      return value ? value.str() : std::string();
    };
    artifact::Source *out = manifest.mutable_source();
    std::string path = text("path");
    out->set_path(path.substr(path.find_last_of('/') + 1));
    out->set_hash(text("hash"));
    out->set_licence(text("licence"));
    out->set_producer(text("producer"));
  }

  void addPayloads() {
    for (const CodeObject &code : inputs.code) {
      codeIndex[code.name] = manifest.payloads_size();
      artifact::Payload *payload = manifest.add_payloads();
      payload->set_kind(artifact::Payload::CODE);
      payload->set_name(code.name);
      payload->set_target(code.target);
      payload->set_arch(code.arch);
      payload->set_size(code.bytes.size());
      for (const std::string &feature : code.features)
        payload->add_features(feature);
    }
    weightsPayload = manifest.payloads_size();
    artifact::Payload *weights = manifest.add_payloads();
    weights->set_kind(artifact::Payload::WEIGHTS);
    weights->set_name("weights");
    if (inputs.tokenizer) {
      artifact::TokenizerInfo *info = manifest.mutable_tokenizer();
      info->set_kind(inputs.tokenizer->kind);
      info->set_payload(manifest.payloads_size());
      info->set_add_bos(inputs.tokenizer->addBos);
      info->set_chat_template(inputs.tokenizer->chatTemplate);
      info->set_bos_token(inputs.tokenizer->bosToken);
      info->set_eos_token(inputs.tokenizer->eosToken);
      artifact::Payload *payload = manifest.add_payloads();
      payload->set_kind(artifact::Payload::TOKENIZER);
      payload->set_name("tokenizer");
      payload->set_size(inputs.tokenizer->bytes.size());
    }
  }

  /// The manifest's weight for a constant buffer: one per symbol and layout.
  FailureOr<uint32_t> weightIndex(rt::BufferOp buffer) {
    DictionaryAttr layout = buffer.getLayoutAttr();
    if (!layout)
      return buffer.emitOpError("has no layout; run --llm-pack-weights"),
             failure();
    auto [it, inserted] =
        weights.insert({{buffer.getNameAttr(), layout},
                        static_cast<uint32_t>(manifest.weights_size())});
    if (!inserted)
      return it->second;
    auto symbol = SymbolTable::lookupNearestSymbolFrom<mlir::llm::WeightOp>(
        module, buffer.getNameAttr());
    if (!symbol)
      return buffer.emitOpError("no llm.weight is named @") << buffer.getName(),
             failure();
    artifact::Weight *weight = manifest.add_weights();
    weight->set_name(buffer.getName().str());
    weight->set_payload(weightsPayload);
    weight->set_offset(weightBytes);
    uint64_t size = mlir::llm::packedSize(layout);
    weight->set_size(size);
    weightBytes += llvm::alignTo(size, 64);
    std::string text;
    llvm::raw_string_ostream(text) << layout;
    weight->set_layout(text);
    weight->set_element_type(elementTypeOf(buffer.getType().getElementType()));
    for (int64_t dim : symbol.getTensorType().getShape())
      weight->add_logical_shape(dim);
    return it->second;
  }

  LogicalResult addProgram(rt::ProgramOp op) {
    artifact::Program *program = manifest.add_programs();
    program->set_name(op.getSymName().str());
    program->set_target(op.getTarget().str());
    program->set_row_invariant(op.getRowInvariant());
    llvm::StringMap<uint32_t> symbols;
    for (StringRef symbol : op.getSymbols().getAsValueRange<StringAttr>()) {
      symbols[symbol] = program->symbols_size();
      program->add_symbols(symbol.str());
    }
    if (!op.getArenaBytes())
      return op.emitOpError("has no arena; run --llm-plan-memory");
    setExpr(*program->mutable_arena_bytes(), *op.getArenaBytes(), symbols);
    if (failed(addCache(op)))
      return failure();
    if (auto vocabulary = op->getAttrOfType<IntegerAttr>("llm.vocab"))
      manifest.set_vocabulary_size(vocabulary.getInt());
    if (auto context = op->getAttrOfType<IntegerAttr>("llm.max_context"))
      maxContext = context.getInt();

    llvm::DenseMap<Value, uint32_t> buffers;
    llvm::StringMap<uint32_t> kernels;
    for (Operation &inner : op.getBody().front()) {
      if (auto buffer = dyn_cast<rt::BufferOp>(inner)) {
        // A transient that nothing uses has no place in the arena.
        if (buffer->use_empty())
          continue;
        buffers[buffer.getResult()] = program->buffers_size();
        if (failed(addBuffer(buffer, *program->add_buffers(), symbols)))
          return failure();
      } else if (auto kernel = dyn_cast<rt::KernelOp>(inner)) {
        kernels[kernel.getSymName()] = program->kernels_size();
        if (failed(addKernel(kernel, *program->add_kernels(), symbols)))
          return failure();
      } else if (auto dispatch = dyn_cast<rt::DispatchOp>(inner)) {
        artifact::Dispatch *out = program->add_dispatches();
        out->set_kernel(kernels.lookup(dispatch.getKernel()));
        for (Value buffer : dispatch.getReads())
          out->add_buffers(buffers.lookup(buffer));
        for (Value buffer : dispatch.getWrites())
          out->add_buffers(buffers.lookup(buffer));
        out->set_num_reads(dispatch.getReads().size());
        for (auto size : dispatch.getSizes().getAsRange<rt::ExprAttr>())
          setExpr(*out->add_sizes(), size, symbols);
        setExpr(*out->mutable_grid(), dispatch.getGrid(), symbols);
        out->set_location(nodeName(dispatch.getLoc()));
        out->set_concurrent(dispatch.getConcurrent());
      }
    }
    return success();
  }

  LogicalResult addBuffer(rt::BufferOp op, artifact::Buffer &out,
                          const llvm::StringMap<uint32_t> &symbols) {
    out.set_name(op.getName().str());
    out.set_element_type(elementTypeOf(op.getType().getElementType()));
    if (out.element_type() == artifact::ELEMENT_UNKNOWN)
      return op.emitOpError("holds elements that an artifact has no name for");
    setExpr(*out.mutable_elements(), op.getElements(), symbols);
    switch (op.getLifetime()) {
    case rt::Lifetime::transient:
      out.set_lifetime(artifact::Buffer::TRANSIENT);
      if (!op.getOffset())
        return op.emitOpError("has no place in the arena; run "
                              "--llm-plan-memory");
      setExpr(*out.mutable_arena_offset(), *op.getOffset(), symbols);
      return success();
    case rt::Lifetime::constant: {
      out.set_lifetime(artifact::Buffer::CONSTANT);
      FailureOr<uint32_t> index = weightIndex(op);
      if (failed(index))
        return failure();
      out.set_weight(*index);
      return success();
    }
    case rt::Lifetime::state:
      out.set_lifetime(artifact::Buffer::STATE);
      out.set_group(*op.getGroup());
      out.set_layer(*op.getLayer());
      out.set_plane(*op.getPlane());
      return success();
    case rt::Lifetime::io:
      out.set_lifetime(artifact::Buffer::IO);
      return success();
    }
    return failure();
  }

  LogicalResult addKernel(rt::KernelOp op, artifact::Kernel &out,
                          const llvm::StringMap<uint32_t> &symbols) {
    out.set_name(op.getSymName().str());
    out.set_family(op.getFamily().str());
    for (auto variant : op.getVariants().getOps<rt::VariantOp>()) {
      auto code = codeIndex.find(variant.getCode());
      if (code == codeIndex.end())
        return variant.emitOpError("no code object was compiled from @")
               << variant.getCode();
      artifact::Variant *entry = out.add_variants();
      entry->set_entry(variant.getEntry().str());
      entry->set_code(code->second);
      entry->set_block_threads(variant.getBlockThreads().value_or(0));
      entry->set_registers(variant.getRegisters().value_or(0));
      entry->set_spill_bytes(variant.getSpillBytes().value_or(0));
      entry->set_shared_bytes(variant.getSharedBytes().value_or(0));
      if (!variant.getRanges())
        continue;
      for (auto range : variant.getRanges()->getAsRange<rt::RangeAttr>()) {
        artifact::Range *bounds = entry->add_ranges();
        bounds->set_symbol(symbols.lookup(range.getSymbol()));
        bounds->set_low(range.getLow());
        bounds->set_high(range.getHigh() == -1 ? INT64_MAX : range.getHigh());
      }
    }
    if (out.variants_size() == 0)
      return op.emitOpError("has no variant; run --llm-generate-kernels");
    return success();
  }

  LogicalResult addCache(rt::ProgramOp op) {
    auto attr = op->getAttrOfType<TypeAttr>("rt.cache");
    if (!attr || manifest.cache_groups_size() != 0)
      return success();
    auto cache = dyn_cast<kv::CacheType>(attr.getValue());
    if (!cache)
      return op.emitOpError("'rt.cache' names no !kv.cache");
    for (kv::GroupAttr group : cache.getGroups()) {
      artifact::CacheGroup *out = manifest.add_cache_groups();
      out->set_num_layers(group.getLayers());
      out->set_kv_heads(group.getKvHeads());
      out->set_page_size(group.getPageSize());
      out->set_keys_rotated(group.getKeysRotated());
      out->set_window(group.getWindow());
      for (kv::PlaneAttr plane : group.getPlanes()) {
        artifact::Plane *entry = out->add_planes();
        entry->set_name(plane.getName().str());
        entry->set_element_type(elementTypeOf(plane.getElementType()));
        uint64_t elements = 1;
        for (int64_t dim : plane.getShape()) {
          entry->add_shape(dim);
          elements *= dim;
        }
        entry->set_granularity(
            static_cast<artifact::Plane::Granularity>(plane.getGranularity()));
        if (plane.getGranularity() == kv::Granularity::token)
          slotBytes +=
              group.getLayers() *
              llvm::divideCeil(
                  elements * plane.getElementType().getIntOrFloatBitWidth(), 8);
      }
    }
    return success();
  }

  LogicalResult addHostFunction(rt::HostFunctionOp op) {
    artifact::HostFunction *out = manifest.add_host_functions();
    out->set_name(op.getSymName().str());
    out->set_entry(op.getEntry().str());
    auto code = codeIndex.find(op.getCode());
    if (code == codeIndex.end())
      return op.emitOpError("no code object was compiled from @")
             << op.getCode();
    out->set_code(code->second);
    auto type = cast<FunctionType>(op.getType());
    auto add = [&](auto *list, TypeRange types, ArrayAttr names,
                   std::optional<ArrayAttr> dims) -> LogicalResult {
      for (auto [i, type] : llvm::enumerate(types)) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        if (!tensor)
          return op.emitOpError("takes or gives other than ranked tensors");
        artifact::TensorInfo *info = list->Add();
        info->set_name(cast<StringAttr>(names[i]).str());
        info->set_element_type(elementTypeOf(tensor.getElementType()));
        ArrayAttr symbols;
        if (dims && i < dims->size())
          symbols = dyn_cast<ArrayAttr>((*dims)[i]);
        for (auto [d, size] : llvm::enumerate(tensor.getShape())) {
          artifact::Dim *dim = info->add_dims();
          dim->set_size(ShapedType::isDynamic(size) ? -1 : size);
          if (symbols && d < symbols.size())
            if (auto symbol = dyn_cast<StringAttr>(symbols[d]))
              dim->set_symbol(symbol.str());
        }
      }
      return success();
    };
    if (failed(add(out->mutable_inputs(), type.getInputs(), op.getInputNames(),
                   op.getInputDims())) ||
        failed(add(out->mutable_outputs(), type.getResults(),
                   op.getOutputNames(), op.getOutputDims())))
      return failure();
    for (StringRef name : op.getConstants().getAsValueRange<StringAttr>()) {
      FailureOr<uint32_t> index = hostConstant(op, name, out);
      if (failed(index))
        return failure();
    }
    return success();
  }

  /// A constant of the generic path: every part of the weight's format as it is
  /// stored, one manifest weight each.
  FailureOr<uint32_t> hostConstant(rt::HostFunctionOp op, StringRef name,
                                   artifact::HostFunction *out) {
    auto symbol = SymbolTable::lookupNearestSymbolFrom<mlir::llm::WeightOp>(
        module, StringAttr::get(module.getContext(), name));
    if (!symbol)
      return op.emitOpError("no llm.weight is named @") << name, failure();
    SmallVector<mlir::llm::ComponentAttr> parts;
    symbol.getFormat().getParts(parts);
    for (mlir::llm::ComponentAttr part : parts) {
      out->add_constants(manifest.weights_size());
      artifact::Weight *weight = manifest.add_weights();
      weight->set_name(name.str() + "#" + part.getName().str());
      weight->set_payload(weightsPayload);
      weight->set_offset(weightBytes);
      RankedTensorType type = part.getType();
      uint64_t bits = type.getElementTypeBitWidth();
      uint64_t size =
          llvm::divideCeil(type.getNumElements() * (bits == 1 ? 8 : bits), 8);
      weight->set_size(size);
      weight->set_layout("stored");
      weight->set_element_type(elementTypeOf(type.getElementType()));
      for (int64_t dim : type.getShape())
        weight->add_logical_shape(dim);
      weightBytes += llvm::alignTo(size, 64);
    }
    return 0u;
  }

  LogicalResult addIteration(rt::IterationOp op,
                             const llvm::StringMap<uint32_t> &programs) {
    artifact::Iteration *out = manifest.add_iterations();
    out->set_name(op.getSymName().str());
    for (Operation &inner : op.getBody().front()) {
      artifact::Iteration::Call *call = out->add_calls();
      if (isa<rt::SampleOp>(inner)) {
        call->set_kind(artifact::Iteration::Call::SAMPLE);
        continue;
      }
      if (isa<rt::AcceptOp>(inner)) {
        call->set_kind(artifact::Iteration::Call::ACCEPT);
        continue;
      }
      if (auto draft = dyn_cast<rt::DraftOp>(inner)) {
        call->set_kind(artifact::Iteration::Call::DRAFT);
        artifact::Draft *out = call->mutable_draft();
        out->set_lookup(static_cast<uint32_t>(draft.getLookup()));
        out->set_tokens(static_cast<uint32_t>(draft.getTokens()));
        for (int64_t cost : draft.getCosts())
          out->add_costs(static_cast<uint32_t>(cost));
        continue;
      }
      auto callee = cast<rt::CallOp>(inner).getCallee();
      auto program = programs.find(callee);
      if (program == programs.end())
        return inner.emitOpError("no rt.program is named @") << callee;
      call->set_kind(artifact::Iteration::Call::PROGRAM);
      call->set_program(program->second);
    }
    return success();
  }

  void finish() {
    manifest.mutable_payloads(weightsPayload)->set_size(weightBytes);
    manifest.set_decoder(manifest.iterations_size() != 0);
    if (!manifest.decoder())
      manifest.set_not_decoder_reason(inputs.notDecoderReason);
    *manifest.mutable_generation() = inputs.generation;
    manifest.mutable_generation()->set_max_context(maxContext);
    for (const artifact::PassRecord &record : inputs.passes)
      *manifest.add_passes() = record;
    artifact::Certificate *certificate = manifest.mutable_certificate();
    certificate->set_weights_bytes(weightBytes);
    if (manifest.programs_size() != 0)
      *certificate->mutable_arena_bytes() = manifest.programs(0).arena_bytes();
    certificate->set_kv_bytes_per_slot(slotBytes);
    uint64_t fixed = kFixedBytes;
    for (const CodeObject &code : inputs.code)
      fixed += 2 * code.bytes.size();
    if (inputs.tokenizer)
      fixed += kTokenizerFactor * inputs.tokenizer->bytes.size();
    certificate->set_fixed_bytes(fixed);
    // Logits of a row on the host and the maxima of their blocks: the io
    // buffers and the sampler's copies.
    certificate->set_bytes_per_vocabulary_row(
        2 * sizeof(float) *
        (manifest.vocabulary_size() +
         ::llvm::divideCeil(manifest.vocabulary_size(), LLM_LOGITS_BLOCK)));
  }

  ModuleOp module;
  const ArtifactInputs &inputs;
  artifact::Manifest manifest;
  llvm::StringMap<uint32_t> codeIndex;
  llvm::DenseMap<std::pair<StringAttr, DictionaryAttr>, uint32_t> weights;
  uint32_t weightsPayload = 0;
  uint64_t weightBytes = 0;
  uint64_t slotBytes = 0;
  uint32_t maxContext = 0;
};

} // namespace

namespace llm {
FailureOr<artifact::Manifest> buildManifest(ModuleOp module,
                                            const ArtifactInputs &inputs) {
  return ManifestBuilder(module, inputs).build();
}
} // namespace llm
