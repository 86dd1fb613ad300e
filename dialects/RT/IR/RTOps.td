//===- RTOps.td - The executable schedule ---*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef RT_OPS
#define RT_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def RT_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::mlir::rt";
  let summary = "The executable schedule, one-to-one with an artifact's manifest";
  let description = [{
    A program is a straight list of dispatches over buffers. Sizes are
    expressions over int64 symbols that the host knows before a step: T (tokens),
    S (sequences), R (rows of logits), P (prompt tokens), B (row length of a
    block table), C (cache slots). A dispatch names a kernel; a kernel has
    variants with a target, features and symbol ranges, and the first match
    wins. `rt.collective` and weight shards are reserved words.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes and types
//===----------------------------------------------------------------------===//

def RT_ExprKind : I32EnumAttr<"ExprKind", "node of a size expression", [
    I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"symbol", 1>, I32EnumAttrCase<"add", 2>,
    I32EnumAttrCase<"mul", 3>, I32EnumAttrCase<"ceildiv", 4>, I32EnumAttrCase<"min", 5>,
    I32EnumAttrCase<"max", 6>]> {
  let cppNamespace = "::mlir::rt";
}

def RT_ExprAttr : AttrDef<RT_Dialect, "Expr"> {
  let mnemonic = "expr";
  let summary = "A size over host symbols: +, *, ceildiv, min, max";
  let description = [{
    Build with the static methods; they fold constants.

    ```mlir
    #rt.expr<T * 576>
    #rt.expr<ceildiv(T, 16) + max(R, 1)>
    ```
  }];
  let parameters = (ins "::mlir::rt::ExprKind":$kind, "int64_t":$value,
    StringRefParameter<"symbol">:$symbol, "::mlir::Attribute":$lhs, "::mlir::Attribute":$rhs);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static ExprAttr constant(::mlir::MLIRContext *context, int64_t value);
    static ExprAttr symbol(::mlir::MLIRContext *context, ::llvm::StringRef name);
    static ExprAttr add(ExprAttr lhs, ExprAttr rhs);
    static ExprAttr mul(ExprAttr lhs, ExprAttr rhs);
    static ExprAttr mul(ExprAttr lhs, int64_t rhs);
    static ExprAttr ceilDiv(ExprAttr lhs, ExprAttr rhs);
    static ExprAttr min(ExprAttr lhs, ExprAttr rhs);
    static ExprAttr max(ExprAttr lhs, ExprAttr rhs);
    /// `this` rounded up to a multiple of `alignment`.
    ExprAttr alignTo(int64_t alignment);
    ExprAttr getLeft() const { return ::llvm::cast<ExprAttr>(getLhs()); }
    ExprAttr getRight() const { return ::llvm::cast<ExprAttr>(getRhs()); }
    ::std::optional<int64_t> getConstant() const;
    /// The value under `symbols`; nullopt for an unknown symbol or overflow.
    ::std::optional<int64_t> evaluate(
        ::llvm::function_ref<::std::optional<int64_t>(::llvm::StringRef)> symbols) const;
    /// Calls `fn` with each symbol's name.
    void walkSymbols(::llvm::function_ref<void(::llvm::StringRef)> fn) const;
  }];
}

def RT_RangeAttr : AttrDef<RT_Dialect, "Range"> {
  let mnemonic = "range";
  let summary = "Inclusive bounds of a symbol; high -1 is unbounded";
  let description = [{
    ```mlir
    #rt.range<T, 2, 8>
    ```
  }];
  let parameters = (ins StringRefParameter<"symbol">:$symbol, "int64_t":$low, "int64_t":$high);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}
def RT_RangeArrayAttr : TypedArrayAttrBase<RT_RangeAttr, "symbol ranges">;
def RT_ExprArrayAttr : TypedArrayAttrBase<RT_ExprAttr, "size expressions">;

def RT_Lifetime : I32EnumAttr<"Lifetime", "lifetime of a buffer", [
    I32EnumAttrCase<"transient", 0>, I32EnumAttrCase<"constant", 1>,
    I32EnumAttrCase<"state", 2>, I32EnumAttrCase<"io", 3>]> {
  let cppNamespace = "::mlir::rt";
}

def RT_BufferType : TypeDef<RT_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "A flat buffer of elements";
  let description = [{
    ```mlir
    !rt.buffer<f32>
    ```
  }];
  let parameters = (ins "::mlir::Type":$element_type);
  let assemblyFormat = "`<` $element_type `>`";
  let genVerifyDecl = 1;
}

def RT_Count : ConfinedAttr<I64Attr, [IntNonNegative]>;

class RT_Op<string mnemonic, list<Trait> traits = []> : Op<RT_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def RT_ProgramOp : RT_Op<"program", [Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "A schedule for one target: buffers, kernels and dispatches";
  let description = [{
    `arena_bytes` is set by `--llm-plan-memory`.

    ```mlir
    rt.program @target target "cpu" symbols ["T", "R"] {
      rt.kernel @k family "elementwise" params {} { }
      %x = rt.buffer io "token" [#rt.expr<T>] : !rt.buffer<i32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$target, StrArrayAttr:$symbols,
    UnitAttr:$row_invariant, OptionalAttr<RT_ExprAttr>:$arena_bytes,
    OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `target` $target `symbols` $symbols attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def RT_BufferOp : RT_Op<"buffer", [Pure, HasParent<"ProgramOp">]> {
  let summary = "A buffer of a program";
  let description = [{
    `name`: an io buffer's step array or output, a constant's weight, a state
    buffer's plane; empty for transients. `offset` (bytes into the arena) is set
    for transients by `--llm-plan-memory`. `layout` names the packed form of a
    constant, set by `--llm-pack-weights`. A state buffer carries group, layer
    and plane.

    ```mlir
    rt.program @target target "cpu" symbols ["T", "C"] {
      %x = rt.buffer io "token" [#rt.expr<T>] : !rt.buffer<i32>
      %h = rt.buffer transient "" [#rt.expr<T * 576>] {offset = #rt.expr<0>} : !rt.buffer<f32>
      %w = rt.buffer constant "model.norm" [#rt.expr<576>] : !rt.buffer<f32>
      %k = rt.buffer state "cache.0.0.k" [#rt.expr<C * 192>]
        {group = 0 : i64, layer = 0 : i64, plane = 0 : i64} : !rt.buffer<f32>
    }
    ```
  }];
  let arguments = (ins RT_Lifetime:$lifetime, StrAttr:$name, RT_ExprAttr:$elements,
    OptionalAttr<RT_ExprAttr>:$offset, OptionalAttr<DictionaryAttr>:$layout,
    OptionalAttr<RT_Count>:$group, OptionalAttr<RT_Count>:$layer, OptionalAttr<RT_Count>:$plane);
  let results = (outs RT_BufferType:$result);
  let assemblyFormat = "$lifetime $name `[` $elements `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def RT_DispatchOp : RT_Op<"dispatch", [AttrSizedOperandSegments, HasParent<"ProgramOp">]> {
  let summary = "Run a kernel over a grid of independent work items";
  let description = [{
    Dispatches run in order, each one after all writes of those before it. One
    that is `concurrent` belongs to the *phase* of the dispatch before it: their
    work items may run in any order, and one barrier ends them all. The
    dispatches of a phase write nothing that another one of them reads or
    writes. The buffers of a kernel call are the reads, then the writes.

    ```mlir
    rt.program @target target "cpu" symbols ["T"] {
      rt.kernel @k family "rms_norm" params {dim = 576 : i64, epsilon = 1.0e-5 : f64} { }
      %x = rt.buffer io "x" [#rt.expr<T * 576>] : !rt.buffer<f32>
      %w = rt.buffer constant "model.norm" [#rt.expr<576>] : !rt.buffer<f32>
      %y = rt.buffer io "y" [#rt.expr<T * 576>] : !rt.buffer<f32>
      rt.dispatch @k grid #rt.expr<T> sizes [#rt.expr<T>]
        reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
      %z = rt.buffer io "z" [#rt.expr<T * 576>] : !rt.buffer<f32>
      rt.dispatch concurrent @k grid #rt.expr<T> sizes [#rt.expr<T>]
        reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%z : !rt.buffer<f32>)
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, RT_ExprAttr:$grid, RT_ExprArrayAttr:$sizes,
    Variadic<RT_BufferType>:$reads, Variadic<RT_BufferType>:$writes, UnitAttr:$concurrent);
  let assemblyFormat = [{
    (`concurrent` $concurrent^)? $kernel `grid` $grid `sizes` $sizes (`reads` `(` $reads^ `:` type($reads) `)`)?
    `writes` `(` $writes `:` type($writes) `)` attr-dict
  }];
  let hasVerifier = 1;
}

def RT_KernelOp : RT_Op<"kernel", [Symbol, NoTerminator, SingleBlock, HasParent<"ProgramOp">]> {
  let summary = "A kernel: a family, its static parameters, its variants";
  let description = [{
    docs/formats/kernel-families.md lists the families with their parameters,
    buffers and sizes. `--llm-generate-kernels` fills in the variants.

    ```mlir
    rt.program @target target "cpu" symbols ["T"] {
      rt.kernel @rms_norm_0 family "rms_norm" params {dim = 576 : i64, epsilon = 1.0e-5 : f64} {
        rt.variant "rms_norm_0_v0" code @cpu
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$family, DictionaryAttr:$params,
    OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$variants);
  let assemblyFormat = "$sym_name `family` $family `params` $params attr-dict-with-keyword $variants";
  let hasRegionVerifier = 1;
}

def RT_VariantOp : RT_Op<"variant", [HasParent<"KernelOp">]> {
  let summary = "One implementation of a kernel";
  let description = [{
    `entry` is a function of the code module (`builtin.module` or `gpu.module`)
    named by `code`; all `ranges` must hold. `block_threads` is the GPU's. A
    machine takes the first code module that it can run; the ranges of a kernel's
    variants in each of them cover every value of their symbol.

    ```mlir
    rt.program @target target "cpu" symbols ["T"] {
      rt.kernel @linear_0 family "linear" params {} {
        rt.variant "linear_0_m1" code @cpu ranges [#rt.range<T, 1, 1>]
        rt.variant "linear_0_m64" code @cpu ranges [#rt.range<T, 2, -1>]
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$entry, FlatSymbolRefAttr:$code,
    OptionalAttr<RT_RangeArrayAttr>:$ranges, OptionalAttr<RT_Count>:$block_threads,
    OptionalAttr<RT_Count>:$registers, OptionalAttr<RT_Count>:$spill_bytes,
    OptionalAttr<RT_Count>:$shared_bytes);
  let assemblyFormat = "$entry `code` $code (`ranges` $ranges^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Iterations and host functions
//===----------------------------------------------------------------------===//

def RT_IterationOp : RT_Op<"iteration", [Symbol, NoTerminator, SingleBlock]> {
  let summary = "The straight list of calls that decode.loop lowers to";
  let description = [{
    ```mlir
    rt.iteration @generate {
      rt.call @target
      rt.sample
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def RT_CallOp : RT_Op<"call", [HasParent<"IterationOp">]> {
  let summary = "Run a program (or a host function) once";
  let description = [{
    ```mlir
    rt.iteration @score {
      rt.call @target
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee);
  let assemblyFormat = "$callee attr-dict";
}

def RT_SampleOp : RT_Op<"sample", [HasParent<"IterationOp">]> {
  let summary = "Pick a token per row of the last program's logits";
  let description = [{
    ```mlir
    rt.iteration @generate {
      rt.call @target
      rt.sample
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def RT_DraftOp : RT_Op<"draft", [HasParent<"IterationOp">]> {
  let summary = "Propose `tokens` tokens at most for each sequence that generates";
  let description = [{
    What followed the last `lookup` tokens of a sequence where they occurred before;
    the program that is called next computes them, too. `costs` are those of
    `decode.draft`.

    ```mlir
    rt.iteration @generate {
      rt.draft lookup 3 tokens 2 costs [1000, 1100, 1200]
      rt.call @target
      rt.accept
    }
    ```
  }];
  let arguments = (ins I64Attr:$lookup, I64Attr:$tokens, DenseI64ArrayAttr:$costs);
  let assemblyFormat = "`lookup` $lookup `tokens` $tokens `costs` $costs attr-dict";
  let hasVerifier = 1;
}

def RT_AcceptOp : RT_Op<"accept", [HasParent<"IterationOp">]> {
  let summary = "Pick tokens as far as the drafts were right, and drop the rest";
  let description = [{
    As `decode.accept` and, with its lengths, `kv.rollback`.

    ```mlir
    rt.iteration @generate {
      rt.draft lookup 3 tokens 2 costs [1000, 1100, 1200]
      rt.call @target
      rt.accept
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def RT_HostFunctionOp : RT_Op<"host_function", [Symbol]> {
  let summary = "A whole graph as one compiled function (the generic path)";
  let description = [{
    `type` is the logical signature on ranked tensors; `input_names` and
    `output_names` are the ONNX names; `constants` the weights it reads, in
    order; `input_dims` and `output_dims` the `llm.dims` of each tensor. Called
    as `llm_host_fn` (include/llm/ABI/kernel.h).

    ```mlir
    rt.host_function @main entry "main" code @cpu : (tensor<?x4xf32>) -> tensor<?x4xf32>
      {constants = [], input_dims = [["batch", ""]], input_names = ["x"], output_names = ["y"]}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$entry, FlatSymbolRefAttr:$code,
    TypeAttrOf<AnyType>:$type, StrArrayAttr:$input_names, StrArrayAttr:$output_names,
    OptionalAttr<ArrayAttr>:$input_dims, OptionalAttr<ArrayAttr>:$output_dims,
    StrArrayAttr:$constants, OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name `entry` $entry `code` $code `:` $type attr-dict";
  let hasVerifier = 1;
}

#endif // RT_OPS
