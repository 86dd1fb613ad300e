//===- Reader.cpp - An artifact as an rt module ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Artifact/Artifact.h"

#include "dialects/KV/IR/KVDialect.h"
#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "runtime/artifact/Artifact.h"

using namespace mlir;
using namespace ::llm;

namespace {

class ModuleBuilder {
public:
  ModuleBuilder(const artifact::Manifest &manifest, MLIRContext &context,
                Location loc)
      : manifest(manifest), context(context), builder(&context), loc(loc) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    addModuleAttributes(*module);
    builder.setInsertionPointToEnd(module->getBody());
    for (const artifact::Program &program : manifest.programs())
      addProgram(program);
    for (const artifact::HostFunction &function : manifest.host_functions())
      addHostFunction(function);
    for (const artifact::Iteration &iteration : manifest.iterations())
      addIteration(iteration);
    return module;
  }

private:
  void addModuleAttributes(ModuleOp module) {
    const artifact::Source &source = manifest.source();
    NamedAttrList attrs;
    attrs.set("path", builder.getStringAttr(source.path()));
    attrs.set("hash", builder.getStringAttr(source.hash()));
    attrs.set("producer", builder.getStringAttr(source.producer()));
    module->setAttr(mlir::llm::kSourceAttr, attrs.getDictionary(&context));
    module->setAttr("llm.recipe", builder.getStringAttr(manifest.recipe()));
  }

  rt::ExprAttr expr(const artifact::Expr &expr,
                    const artifact::Program &program) {
    using rt::ExprAttr;
    // The reader has checked the stack discipline and the symbols.
    SmallVector<ExprAttr> stack;
    for (const artifact::Expr::Node &node : expr.nodes()) {
      if (node.op() == artifact::Expr::CONSTANT) {
        stack.push_back(ExprAttr::constant(&context, node.value()));
        continue;
      }
      if (node.op() == artifact::Expr::SYMBOL) {
        stack.push_back(
            ExprAttr::symbol(&context, program.symbols(node.value())));
        continue;
      }
      ExprAttr rhs = stack.pop_back_val(), lhs = stack.pop_back_val();
      switch (node.op()) {
      case artifact::Expr::ADD:
        stack.push_back(ExprAttr::add(lhs, rhs));
        break;
      case artifact::Expr::MUL:
        stack.push_back(ExprAttr::mul(lhs, rhs));
        break;
      case artifact::Expr::CEIL_DIV:
        stack.push_back(ExprAttr::ceilDiv(lhs, rhs));
        break;
      case artifact::Expr::MIN:
        stack.push_back(ExprAttr::min(lhs, rhs));
        break;
      default:
        stack.push_back(ExprAttr::max(lhs, rhs));
      }
    }
    return stack.empty() ? ExprAttr::constant(&context, 0) : stack.back();
  }

  TypeAttr cacheType() {
    SmallVector<kv::GroupAttr> groups;
    for (const artifact::CacheGroup &group : manifest.cache_groups()) {
      SmallVector<kv::PlaneAttr> planes;
      for (const artifact::Plane &plane : group.planes())
        planes.push_back(kv::PlaneAttr::get(
            &context, plane.name(), typeOf(plane.element_type(), context),
            SmallVector<int64_t>(plane.shape().begin(), plane.shape().end()),
            static_cast<kv::Granularity>(plane.granularity())));
      groups.push_back(kv::GroupAttr::get(
          &context, group.num_layers(), group.kv_heads(), planes,
          group.page_size(), group.keys_rotated(), group.window()));
    }
    return TypeAttr::get(kv::CacheType::get(&context, groups));
  }

  void addProgram(const artifact::Program &program) {
    SmallVector<StringRef> symbols(program.symbols().begin(),
                                   program.symbols().end());
    auto op = rt::ProgramOp::create(
        builder, loc, program.name(), program.target(),
        builder.getStrArrayAttr(symbols), program.row_invariant(),
        expr(program.arena_bytes(), program), StringAttr());
    if (manifest.cache_groups_size() != 0)
      op->setAttr("rt.cache", cacheType());
    if (manifest.vocabulary_size() != 0)
      op->setAttr("llm.vocab",
                  builder.getI64IntegerAttr(manifest.vocabulary_size()));
    if (manifest.generation().max_context() != 0)
      op->setAttr("llm.max_context", builder.getI64IntegerAttr(
                                         manifest.generation().max_context()));
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&op.getBody());
    for (const artifact::Kernel &kernel : program.kernels())
      addKernel(kernel, program);
    SmallVector<Value> buffers;
    for (const artifact::Buffer &buffer : program.buffers())
      buffers.push_back(addBuffer(buffer, program));
    for (const artifact::Dispatch &dispatch : program.dispatches()) {
      SmallVector<Value> reads, writes;
      for (auto [i, index] : llvm::enumerate(dispatch.buffers()))
        (i < dispatch.num_reads() ? reads : writes).push_back(buffers[index]);
      SmallVector<Attribute> sizes;
      for (const artifact::Expr &size : dispatch.sizes())
        sizes.push_back(expr(size, program));
      Location nodeLoc =
          dispatch.location().empty()
              ? loc
              : NameLoc::get(builder.getStringAttr(dispatch.location()));
      rt::DispatchOp::create(
          builder, nodeLoc,
          FlatSymbolRefAttr::get(&context,
                                 program.kernels(dispatch.kernel()).name()),
          expr(dispatch.grid(), program), builder.getArrayAttr(sizes), reads,
          writes, dispatch.concurrent() ? builder.getUnitAttr() : UnitAttr());
    }
  }

  Value addBuffer(const artifact::Buffer &buffer,
                  const artifact::Program &program) {
    rt::Lifetime lifetime = rt::Lifetime::transient;
    rt::ExprAttr offset;
    DictionaryAttr layout;
    IntegerAttr group, layer, plane;
    switch (buffer.lifetime()) {
    case artifact::Buffer::CONSTANT:
      lifetime = rt::Lifetime::constant;
      layout = dyn_cast_or_null<DictionaryAttr>(
          parseAttribute(manifest.weights(buffer.weight()).layout(), &context));
      break;
    case artifact::Buffer::STATE:
      lifetime = rt::Lifetime::state;
      group = builder.getI64IntegerAttr(buffer.group());
      layer = builder.getI64IntegerAttr(buffer.layer());
      plane = builder.getI64IntegerAttr(buffer.plane());
      break;
    case artifact::Buffer::IO:
      lifetime = rt::Lifetime::io;
      break;
    default:
      offset = expr(buffer.arena_offset(), program);
    }
    return rt::BufferOp::create(
        builder, loc,
        rt::BufferType::get(&context, typeOf(buffer.element_type(), context)),
        lifetime, buffer.name(), expr(buffer.elements(), program), offset,
        layout, group, layer, plane);
  }

  void addKernel(const artifact::Kernel &kernel,
                 const artifact::Program &program) {
    auto op = rt::KernelOp::create(builder, loc, kernel.name(), kernel.family(),
                                   builder.getDictionaryAttr({}), StringAttr());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&op.getVariants());
    auto number = [&](uint32_t value) {
      return value ? builder.getI64IntegerAttr(value) : IntegerAttr();
    };
    for (const artifact::Variant &variant : kernel.variants()) {
      SmallVector<Attribute> ranges;
      for (const artifact::Range &range : variant.ranges())
        ranges.push_back(rt::RangeAttr::get(
            &context, program.symbols(range.symbol()), range.low(),
            range.high() == INT64_MAX ? -1 : range.high()));
      rt::VariantOp::create(
          builder, loc, builder.getStringAttr(variant.entry()),
          FlatSymbolRefAttr::get(&context,
                                 manifest.payloads(variant.code()).name()),
          ranges.empty() ? ArrayAttr() : builder.getArrayAttr(ranges),
          number(variant.block_threads()), number(variant.registers()),
          number(variant.spill_bytes()), number(variant.shared_bytes()));
    }
  }

  void addHostFunction(const artifact::HostFunction &function) {
    auto side = [&](const auto &list, SmallVectorImpl<Type> &types,
                    SmallVectorImpl<StringRef> &names,
                    SmallVectorImpl<Attribute> &dims) {
      for (const artifact::TensorInfo &info : list) {
        SmallVector<int64_t> shape;
        SmallVector<StringRef> symbols;
        for (const artifact::Dim &dim : info.dims()) {
          shape.push_back(dim.size() < 0 ? ShapedType::kDynamic : dim.size());
          symbols.push_back(dim.symbol());
        }
        types.push_back(
            RankedTensorType::get(shape, typeOf(info.element_type(), context)));
        names.push_back(info.name());
        dims.push_back(builder.getStrArrayAttr(symbols));
      }
    };
    SmallVector<Type> inputs, outputs;
    SmallVector<StringRef> inputNames, outputNames, constants;
    SmallVector<Attribute> inputDims, outputDims;
    side(function.inputs(), inputs, inputNames, inputDims);
    side(function.outputs(), outputs, outputNames, outputDims);
    for (uint32_t index : function.constants())
      constants.push_back(manifest.weights(index).name());
    rt::HostFunctionOp::create(
        builder, loc, builder.getStringAttr(function.name()),
        builder.getStringAttr(function.entry()),
        FlatSymbolRefAttr::get(&context,
                               manifest.payloads(function.code()).name()),
        TypeAttr::get(FunctionType::get(&context, inputs, outputs)),
        builder.getStrArrayAttr(inputNames),
        builder.getStrArrayAttr(outputNames), builder.getArrayAttr(inputDims),
        builder.getArrayAttr(outputDims), builder.getStrArrayAttr(constants),
        StringAttr());
  }

  void addIteration(const artifact::Iteration &iteration) {
    auto op =
        rt::IterationOp::create(builder, loc, iteration.name(), StringAttr());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&op.getBody());
    for (const artifact::Iteration::Call &call : iteration.calls()) {
      if (call.kind() == artifact::Iteration::Call::SAMPLE) {
        rt::SampleOp::create(builder, loc);
      } else if (call.kind() == artifact::Iteration::Call::ACCEPT) {
        rt::AcceptOp::create(builder, loc);
      } else if (call.kind() == artifact::Iteration::Call::DRAFT) {
        const artifact::Draft &draft = call.draft();
        SmallVector<int64_t> costs(draft.costs().begin(), draft.costs().end());
        rt::DraftOp::create(builder, loc, draft.lookup(), draft.tokens(),
                            costs);
      } else {
        rt::CallOp::create(builder, loc,
                           manifest.programs(call.program()).name());
      }
    }
  }

  const artifact::Manifest &manifest;
  MLIRContext &context;
  OpBuilder builder;
  Location loc;
};

} // namespace

namespace llm {
OwningOpRef<ModuleOp> readArtifact(StringRef path, MLIRContext &context) {
  Location loc = FileLineColLoc::get(&context, path, 0, 0);
  auto artifact = runtime::Artifact::open(path.str());
  if (!artifact) {
    emitError(loc) << artifact.status().message();
    return {};
  }
  context.loadDialect<rt::RTDialect, kv::KVDialect, mlir::llm::LLMDialect>();
  OwningOpRef<ModuleOp> module =
      ModuleBuilder((*artifact)->manifest(), context, loc).build();
  // What the manifest's own checks let through and the dialect refuses.
  if (failed(verify(*module)))
    return {};
  return module;
}
} // namespace llm
