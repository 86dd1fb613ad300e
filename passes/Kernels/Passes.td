//===- Passes.td - Kernels: packing and code --------------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Filing rule: passes that turn rt.kernel ops into code, and what that code
// needs of its operands. Alphabetical.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS
#define LLM_PASSES_KERNELS

include "mlir/Pass/PassBase.td"

def FuseDispatchesPass : Pass<"llm-fuse-dispatches", "::mlir::ModuleOp"> {
  let summary = "Let kernels convert rows, add residuals, activate, rotate keys";
  let description = [{
    In programs with target "cpu", after --llm-pack-weights: where only a
    `quantize_rows` or a `cast_rows` reads what a norm or a chain of elementwise
    operators writes, that kernel writes the converted rows (parameter
    `output`). Where only an addition of two inputs reads what a `linear`
    writes, the `linear` adds the other rows last (parameter `residual`). Where
    only a chain of elementwise operators reads what one or several `linear` of
    one input and one form write, one `linear` reads all their weights and
    computes the chain, too (parameter `ops`): a gated product is one dispatch,
    whose sums never reach memory. Where only a `kv_append` reads what a `rope`
    writes, it rotates the rows itself (parameters `rotary_dim`, `positions` and
    `interleaved`). The results keep their bits.

    A `linear` whose output is the io buffer "logits" also writes the largest finite
    one of each panel (parameter `maxima`) to the io buffer "logits_maxima":
    sampling the most probable tokens then reads one logit of 32, and the panels
    that count.

    ```mlir
    rt.dispatch @rms_norm_0 ... reads(%x, %scale) writes(%rows)
    rt.dispatch @quantize_rows ... reads(%rows) writes(%codes, %scales, %offsets)
    rt.dispatch @linear_0 ... reads(%codes, %scales, %offsets, %w) writes(%y)
    rt.dispatch @elementwise_0 ... reads(%x, %y) writes(%sum)
    rt.dispatch @rope_0 ... reads(%keys, %position, %cos, %sin) writes(%rotated)
    rt.dispatch @kv_append_0 ... reads(%rotated, %slot, %seq) writes(%plane)
    ```
    becomes
    ```mlir
    rt.dispatch @rms_norm_0_0 ... reads(%x, %scale) writes(%codes, %scales, %offsets)
    rt.dispatch @linear_0_1 ... reads(%codes, %scales, %offsets, %w, %x) writes(%sum)
    rt.dispatch @kv_append_0_2 ... reads(%keys, %slot, %seq, %position, %cos, %sin) writes(%plane)
    ```
  }];
  let dependentDialects = ["::mlir::rt::RTDialect"];
  let statistics = [
    Statistic<"numConversions", "conversions", "Conversions that a producer took in">,
    Statistic<"numMaxima", "maxima", "Linears that leave the maxima of the logits">,
    Statistic<"numPrograms", "programs", "Elementwise chains that a linear took in">,
    Statistic<"numResiduals", "residuals", "Additions that a linear took in">,
    Statistic<"numRotations", "rotations", "Rotations that a kv_append took in">
  ];
}

def GenerateKernelsPass : Pass<"llm-generate-kernels", "::mlir::ModuleOp"> {
  let summary = "Generate the functions of every rt.kernel, per target";
  let description = [{
    Fills rt.kernel ops without variants. The functions of programs with target
    "cpu" go into the code module `@cpu`, beside the programs; kernels of the
    same family and parameters share one set of functions. Those of programs
    with target "cuda" go into a gpu.module per architecture, those of target
    "cuda-emulator" into a gpu.module without architecture; dispatches of GPU
    programs get their numbers of blocks as grid.
    docs/formats/kernel-families.md is the contract of each family.

    ```mlir
    rt.kernel @norm family "rms_norm" params {dim = 8 : i64, epsilon = 1.0e-5 : f64} {
    }
    ```
    becomes
    ```mlir
    rt.kernel @norm family "rms_norm" params {dim = 8 : i64, epsilon = 1.0e-5 : f64} {
      rt.variant "norm" code @cpu
    }
    // and, in builtin.module @cpu
    func.func @norm(%x: memref<..xf32>, %scale: memref<8xf32>, %out: memref<..xf32>,
                    %T: i64, %begin: index, %end: index)
    ```
  }];
  let options = [
    ListOption<"mcpus", "mcpu", "std::string",
      "Processors of CPU code: native (the default), x86-64, x86-64-v2, -v3, -v4 or names LLVM knows">,
    ListOption<"archs", "arch", "std::string",
      "Architectures of programs for cuda: sm_80, sm_90, ...">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::rt::RTDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"numFunctions", "functions", "Functions generated">,
    Statistic<"numShared", "shared kernels", "Kernels that share another one's functions">
  ];
}

def PackWeightsPass : Pass<"llm-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Choose the packed layout of every constant";
  let description = [{
    Per program with target "cpu": a constant that a `linear` reads goes into
    panels (panel_affine where it has affine groups, panel_pairs for bf16), a table that only
    `embedding` reads stays in rows, everything else becomes rows of f32. A
    table that is also the weight of a `linear` is gathered from the panels, so
    that it is stored once. Sets the layout, the element type and the count of
    the buffers, `layout` in the parameters of the kernels that read them, and
    the grid of their dispatches. A `linear` of accuracy level 4 over affine
    groups gets a `quantize_rows` before it, one of level 3 over bf16 a
    `cast_rows`. In programs for the GPU the affine
    weight of a `linear` becomes gpu_affine. passes/Kernels/Layouts.h describes
    the bytes; the artifact writer makes them with `packWeight`.

    ```mlir
    rt.kernel @l family "linear" params {n = 100 : i64, k = 64 : i64} { }
    %w = rt.buffer constant "w" [#rt.expr<6400>] : !rt.buffer<f16>
    ```
    becomes
    ```mlir
    rt.kernel @l family "linear" params {k = 64 : i64, layout = {k = 64 : i64,
      kind = "panel", n = 100 : i64, type = f16}, n = 100 : i64} { }
    %w = rt.buffer constant "w" [#rt.expr<8192>] {layout = {k = 64 : i64,
      kind = "panel", n = 100 : i64, type = f16}} : !rt.buffer<f16>
    ```
  }];
  let dependentDialects = ["::mlir::rt::RTDialect"];
  let statistics = [
    Statistic<"numPanels", "panel weights", "Constants packed into panels">,
    Statistic<"numConverted", "converted inputs", "quantize_rows and cast_rows dispatches added">
  ];
}

#endif // LLM_PASSES_KERNELS
