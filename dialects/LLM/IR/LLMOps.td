//===- LLMOps.td - Ops of the llm dialect ------------------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: weights, then composites, then primitives by family
// (elementwise, reductions, shape and data movement); alphabetical inside.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_OPS
#define LLM_OPS

include "dialects/LLM/IR/LLMAttrs.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class LLM_Op<string mnemonic, list<Trait> traits = []>
    : Op<LLM_Dialect, mnemonic, traits>;

class LLM_PureOp<string mnemonic, list<Trait> traits = []>
    : LLM_Op<mnemonic, !listconcat([Pure], traits)>;

/// Elementwise over operands that broadcast as NumPy does. (The upstream trait
/// Elementwise asks for operands of one shape.)
def LLM_Broadcasting : NativeOpTrait<"Broadcasting"> {
  let cppNamespace = "::mlir::llm";
}

def LLM_Tensor : RankedTensorOf<[AnyType]>;
def LLM_FloatTensor : RankedTensorOf<[AnyFloat]>;
def LLM_IntTensor : RankedTensorOf<[AnyInteger]>;
def LLM_BoolTensor : RankedTensorOf<[I1]>;

def LLM_Count : ConfinedAttr<I64Attr, [IntNonNegative]>;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

def LLM_ConstantOp : LLM_PureOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A small tensor held in the IR";
  let description = [{
    Indices, axes, shapes, scalars. What is larger is an `llm.weight`.

    ```mlir
    %0 = llm.constant dense<[0, -1]> : tensor<2xi64>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

def LLM_WeightOp : LLM_Op<"weight", [Symbol]> {
  let summary = "A weight: a symbol with a logical type and a storage format";
  let description = [{
    ```mlir
    llm.weight @norm : tensor<2xf32> = #llm.dense<
      #llm.component<"data", tensor<2xf32>, dense<1.0> : tensor<2xf32>>>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<LLM_Tensor>:$type,
                       LLM_WeightFormatInterface:$format,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name `:` $type `=` $format attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
  }];
}

def LLM_GetWeightOp : LLM_PureOp<"get_weight", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The logical value of a weight";
  let description = [{
    The value is the dequantized tensor, whatever the format; consumers that
    know the format read the stored form in their kernel.

    ```mlir
    llm.weight @norm : tensor<2xf32> = #llm.dense<
      #llm.component<"data", tensor<2xf32>, dense<1.0> : tensor<2xf32>>>
    %w = llm.get_weight @norm : tensor<2xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$weight attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

// One group of results, none or two, so that a functional type says it all.
class LLM_PresentText {
  string text = [{
    /// The cache after this call, or null where the op does not return it.
    ::mlir::Value getPresentKey() {
      return getPresent().empty() ? ::mlir::Value() : getPresent()[0];
    }
    ::mlir::Value getPresentValue() {
      return getPresent().empty() ? ::mlir::Value() : getPresent()[1];
    }
  }];
}
def LLM_PresentResults : LLM_PresentText;

def LLM_AttentionOp : LLM_PureOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention over batches (ONNX Attention)";
  let description = [{
    query, key and value are all [batch, seq, heads * size] or all [batch, heads, seq,
    size]; past_key and past_value are [batch, kv_heads, past, size]. The
    present results hold past and new slots. `mask` broadcasts to [batch, heads,
    seq, past + seq]; i1 true means attend, floats are added. `causal`: query i
    sees slot j when j <= i + offset, the offset being the past length (or
    nonpad_kv_seqlen - seq where that is given). softcap 0 is none; window 0 is
    none, else a query sees itself and the window - 1 slots before it. A row
    that sees nothing yields 0. Source: ONNX operator Attention, opset 24.

    ```mlir
    %y = llm.attention %q, %k, %v {causal, kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
      : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$query, LLM_FloatTensor:$key,
    LLM_FloatTensor:$value, Optional<LLM_FloatTensor>:$past_key,
    Optional<LLM_FloatTensor>:$past_value, Optional<LLM_Tensor>:$mask,
    Optional<LLM_IntTensor>:$nonpad_kv_seqlen,
    I64Attr:$num_heads, I64Attr:$kv_heads, F64Attr:$scale,
    DefaultValuedAttr<F64Attr, "0.0">:$softcap,
    DefaultValuedAttr<LLM_Count, "0">:$window, UnitAttr:$causal);
  let results = (outs LLM_FloatTensor:$output, Variadic<LLM_FloatTensor>:$present);
  let extraClassDeclaration = LLM_PresentResults.text;
  let assemblyFormat = [{
    $query `,` $key `,` $value (`past` `(` $past_key^ `,` $past_value `)`)?
    (`mask` `(` $mask^ `)`)? (`nonpad` `(` $nonpad_kv_seqlen^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def LLM_EmbeddingOp : LLM_PureOp<"embedding"> {
  let summary = "Rows of a table by id";
  let description = [{
    indices [..], table [V, D] gives [.., D]; an index outside [0, V) is an
    error of the caller and yields row 0 or V-1 (clamped).

    ```mlir
    %h = llm.embedding %ids, %w : (tensor<?x?xi64>, tensor<512x64xf32>) -> tensor<?x?x64xf32>
    ```
  }];
  let arguments = (ins LLM_IntTensor:$indices, LLM_FloatTensor:$table);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$indices `,` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_GroupQueryAttentionOp : LLM_PureOp<"group_query_attention", [AttrSizedOperandSegments]> {
  let summary = "Attention with its cache update (com.microsoft GroupQueryAttention)";
  let description = [{
    query [batch, seq, num_heads * size], key and value [batch, seq, kv_heads *
    size]; past [batch, kv_heads, past, size]; `seqlens_k` [batch] holds the
    total length - 1 of each sequence; `total_sequence_length` is the largest
    total length. cos and sin [positions, rotary / 2] are given when the op
    rotates. Causal; window as in `llm.attention`. A packed query is split by
    the importer. Source: ONNX Runtime contrib operators.

    ```mlir
    %y, %pk, %pv = llm.group_query_attention %q, %k, %v past(%0, %1) lengths(%l, %t)
      {kv_heads = 2 : i64, num_heads = 4 : i64, scale = 0.25 : f64}
      : (tensor<1x3x64xf32>, tensor<1x3x32xf32>, tensor<1x3x32xf32>, tensor<1x2x?x16xf32>,
         tensor<1x2x?x16xf32>, tensor<1xi32>, tensor<i32>)
      -> (tensor<1x3x64xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>)
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$query, LLM_FloatTensor:$key,
    LLM_FloatTensor:$value, Optional<LLM_FloatTensor>:$past_key,
    Optional<LLM_FloatTensor>:$past_value, LLM_IntTensor:$seqlens_k,
    LLM_IntTensor:$total_sequence_length,
    Optional<LLM_FloatTensor>:$cos_table, Optional<LLM_FloatTensor>:$sin_table,
    Optional<LLM_IntTensor>:$position_ids,
    Optional<LLM_FloatTensor>:$attention_bias, Optional<LLM_FloatTensor>:$head_sink,
    I64Attr:$num_heads, I64Attr:$kv_heads, F64Attr:$scale,
    DefaultValuedAttr<F64Attr, "0.0">:$softcap,
    DefaultValuedAttr<LLM_Count, "0">:$window, UnitAttr:$interleaved,
    UnitAttr:$smooth_softmax);
  let results = (outs LLM_FloatTensor:$output, Variadic<LLM_FloatTensor>:$present);
  let extraClassDeclaration = LLM_PresentResults.text;
  let assemblyFormat = [{
    $query `,` $key `,` $value (`past` `(` $past_key^ `,` $past_value `)`)?
    `lengths` `(` $seqlens_k `,` $total_sequence_length `)`
    (`rotary` `(` $cos_table^ `,` $sin_table `)`)? (`positions` `(` $position_ids^ `)`)?
    (`bias` `(` $attention_bias^ `)`)? (`sink` `(` $head_sink^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def LLM_LayerNormOp : LLM_PureOp<"layer_norm"> {
  let summary = "Layer normalization over the axes from `axis` on";
  let description = [{
    y = (x - mean) / sqrt(variance + epsilon) * scale + bias, statistics in f32.

    ```mlir
    %y = llm.layer_norm %x, %s bias(%b) {axis = -1 : i64, epsilon = 1.0e-05 : f64}
      : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_FloatTensor:$scale,
    Optional<LLM_FloatTensor>:$bias, DefaultValuedAttr<I64Attr, "-1">:$axis,
    DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $scale (`bias` `(` $bias^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def LLM_LinearOp : LLM_PureOp<"linear"> {
  let summary = "x times the transpose of a weight, plus a bias";
  let description = [{
    input [.., K], weight [N, K] (or [K, N] with `transposed`, as exporters
    store it) gives [.., N]. `accuracy_level` says in how few bits a kernel may
    read the input (com.microsoft MatMulNBits): 4 int8, 3 bf16, 2 f16; 0 and 1
    are f32. int8 has a scale per token and weight group, or for as many whole
    groups as `activation_group` inputs hold.

    ```mlir
    %y = llm.linear %x, %w : (tensor<?x?x64xf32>, tensor<172x64xf32>) -> tensor<?x?x172xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_FloatTensor:$weight,
    Optional<LLM_FloatTensor>:$bias, UnitAttr:$transposed,
    DefaultValuedAttr<LLM_Count, "0">:$accuracy_level,
    DefaultValuedAttr<LLM_Count, "0">:$activation_group);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def LLM_RMSNormOp : LLM_PureOp<"rms_norm"> {
  let summary = "Root-mean-square normalization over the axes from `axis` on";
  let description = [{
    y = x / sqrt(mean(x^2) + epsilon) * scale, the mean in f32 (Zhang and
    Sennrich, 2019; ONNX RMSNormalization, opset 23).

    ```mlir
    %y = llm.rms_norm %x, %s {axis = -1 : i64, epsilon = 1.0e-05 : f64}
      : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_FloatTensor:$scale,
    DefaultValuedAttr<I64Attr, "-1">:$axis,
    DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$input `,` $scale attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_RopeOp : LLM_PureOp<"rope"> {
  let summary = "Rotary position embedding (ONNX RotaryEmbedding)";
  let description = [{
    input [batch, seq, heads * size] (`num_heads` says how many) or [batch,
    heads, seq, size], or [tokens, heads * size] in the decoder form. With
    positions, the tables are [max_position, rotary / 2] and rows are picked by
    position; without, they are [batch, seq, rotary / 2]. The first `rotary_dim`
    elements of a head turn (0: all): pairs (i, i + rotary / 2), or (2i, 2i + 1)
    where `interleaved`. Su et al., 2021.

    ```mlir
    %y = llm.rope %x, %cos, %sin positions(%p) {num_heads = 2 : i64}
      : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_FloatTensor:$cos_table,
    LLM_FloatTensor:$sin_table, Optional<LLM_IntTensor>:$positions,
    DefaultValuedAttr<LLM_Count, "0">:$num_heads,
    DefaultValuedAttr<LLM_Count, "0">:$rotary_dim, UnitAttr:$interleaved);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $cos_table `,` $sin_table (`positions` `(` $positions^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise: operands broadcast as NumPy does
//===----------------------------------------------------------------------===//

class LLM_UnaryOp<string mnemonic, string text, Type tensor = LLM_Tensor,
                  string example = "f32"> : LLM_PureOp<mnemonic, [SameOperandsAndResultType, Elementwise]> {
  let summary = text;
  let description = "The ONNX operator.\n\n```mlir\n%y = llm." # mnemonic #
    " %x : tensor<?x4x" # example # ">\n```\n";
  let arguments = (ins tensor:$input);
  let results = (outs tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}
class LLM_FloatUnaryOp<string mnemonic, string text>
    : LLM_UnaryOp<mnemonic, text, LLM_FloatTensor>;

def LLM_AbsOp : LLM_UnaryOp<"abs", "Absolute value">;
def LLM_CeilOp : LLM_FloatUnaryOp<"ceil", "Least integer not below">;
def LLM_CosOp : LLM_FloatUnaryOp<"cos", "Cosine">;
def LLM_ErfOp : LLM_FloatUnaryOp<"erf", "Error function">;
def LLM_ExpOp : LLM_FloatUnaryOp<"exp", "Exponential">;
def LLM_FloorOp : LLM_FloatUnaryOp<"floor", "Greatest integer not above">;
def LLM_LogOp : LLM_FloatUnaryOp<"log", "Natural logarithm">;
def LLM_NegOp : LLM_UnaryOp<"neg", "Negation">;
def LLM_NotOp : LLM_UnaryOp<"not", "Logical negation of i1", LLM_BoolTensor, "i1">;
def LLM_ReciprocalOp : LLM_FloatUnaryOp<"reciprocal", "1 / x">;
def LLM_ReluOp : LLM_UnaryOp<"relu", "max(x, 0)">;
def LLM_RoundOp : LLM_FloatUnaryOp<"round", "Nearest integer, ties to even">;
def LLM_SigmoidOp : LLM_FloatUnaryOp<"sigmoid", "1 / (1 + exp(-x))">;
def LLM_SignOp : LLM_UnaryOp<"sign", "-1, 0 or 1">;
def LLM_SiluOp : LLM_FloatUnaryOp<"silu", "x * sigmoid(x) (ONNX Swish with alpha 1)">;
def LLM_SinOp : LLM_FloatUnaryOp<"sin", "Sine">;
def LLM_SoftplusOp : LLM_FloatUnaryOp<"softplus", "log(1 + exp(x))">;
def LLM_SqrtOp : LLM_FloatUnaryOp<"sqrt", "Square root">;
def LLM_TanhOp : LLM_FloatUnaryOp<"tanh", "Hyperbolic tangent">;

def LLM_GeluOp : LLM_PureOp<"gelu", [SameOperandsAndResultType, Elementwise]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `none`: x * Phi(x) through erf; `tanh`: the tanh form; `sigmoid`: x *
    sigmoid(1.702 x) (QuickGelu). Hendrycks and Gimpel, 2016.

    ```mlir
    %y = llm.gelu %x {approximation = 1 : i32} : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input,
    DefaultValuedAttr<LLM_GeluApproximation, "GeluApproximation::none">:$approximation);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def LLM_CastOp : LLM_PureOp<"cast", [SameOperandsAndResultShape, Elementwise]> {
  let summary = "Conversion of the element type (ONNX Cast)";
  let description = [{
    ```mlir
    %y = llm.cast %x : tensor<?xi64> -> tensor<?xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, DefaultValuedAttr<BoolAttr, "true">:$saturate);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

class LLM_BinaryOp<string mnemonic, string text, list<Trait> traits = [],
                   string element = "f32", string result = element>
    : LLM_PureOp<mnemonic, !listconcat([LLM_Broadcasting], traits)> {
  let summary = text;
  let description = "Operands broadcast as NumPy does.\n\n```mlir\n%z = llm." # mnemonic #
    " %x, %y : (tensor<?x4x" # element # ">, tensor<4x" # element #
    ">) -> tensor<?x4x" # result # ">\n```\n";
  let arguments = (ins LLM_Tensor:$lhs, LLM_Tensor:$rhs);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      return ::mlir::llm::verifyBroadcast(*this);
    }
  }];
}
// Arithmetic: the result has the operands' element type.
def LLM_AddOp : LLM_BinaryOp<"add", "x + y", [Commutative]>;
def LLM_DivOp : LLM_BinaryOp<"div", "x / y (integers truncate)">;
def LLM_MaxOp : LLM_BinaryOp<"max", "Larger of x and y", [Commutative]>;
def LLM_MinOp : LLM_BinaryOp<"min", "Smaller of x and y", [Commutative]>;
def LLM_ModOp : LLM_BinaryOp<"mod", "Remainder with the divisor's sign"> {
  let arguments = (ins LLM_Tensor:$lhs, LLM_Tensor:$rhs, UnitAttr:$fmod);
}
def LLM_MulOp : LLM_BinaryOp<"mul", "x * y", [Commutative]>;
def LLM_PowOp : LLM_BinaryOp<"pow", "x to the power y; the result has the type of x">;
def LLM_SubOp : LLM_BinaryOp<"sub", "x - y">;
// Logic over i1 (and bits, for integers).
def LLM_AndOp : LLM_BinaryOp<"and", "Conjunction", [Commutative], "i1">;
def LLM_OrOp : LLM_BinaryOp<"or", "Disjunction", [Commutative], "i1">;
def LLM_XorOp : LLM_BinaryOp<"xor", "Exclusive or", [Commutative], "i1">;
// Comparisons give i1.
def LLM_EqualOp : LLM_BinaryOp<"equal", "x == y, as i1", [Commutative], "f32", "i1">;
def LLM_GreaterOp : LLM_BinaryOp<"greater", "x > y, as i1", [], "f32", "i1">;
def LLM_GreaterEqualOp : LLM_BinaryOp<"greater_equal", "x >= y, as i1", [], "f32", "i1">;
def LLM_LessOp : LLM_BinaryOp<"less", "x < y, as i1", [], "f32", "i1">;
def LLM_LessEqualOp : LLM_BinaryOp<"less_equal", "x <= y, as i1", [], "f32", "i1">;

def LLM_WhereOp : LLM_PureOp<"where", [LLM_Broadcasting]> {
  let summary = "x where the condition holds, else y";
  let description = [{
    ```mlir
    %z = llm.where %c, %x, %y : (tensor<?x4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins LLM_BoolTensor:$condition, LLM_Tensor:$x, LLM_Tensor:$y);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$condition `,` $x `,` $y attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_FusedElementwiseOp : LLM_PureOp<"fused_elementwise"> {
  let summary = "A chain of elementwise ops over whole rows, as one kernel";
  let description = [{
    Made by `--llm-form-dispatches`. `ops` is postfix over the operands:
    "in0", "in1", ... push an operand, "const:0x3f800000" the f32 with these
    bits; add, sub, mul, div, max, min take two values, neg, abs, exp, log, sqrt,
    reciprocal, sigmoid, tanh, silu, relu, gelu, gelu_tanh, gelu_sigmoid,
    softplus, erf one. Operands are [rows, width], or [width] and repeat.

    ```mlir
    %y = llm.fused_elementwise %g, %u ["in0", "silu", "in1", "mul"]
      : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Variadic<LLM_FloatTensor>:$inputs, StrArrayAttr:$ops);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$inputs $ops attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Values that an operator takes: 2, 1, or 0 where it is not one.
    static int arity(::llvm::StringRef op);
  }];
}

def LLM_ClipOp : LLM_PureOp<"clip", [AttrSizedOperandSegments]> {
  let summary = "Limit to [low, high]";
  let description = [{
    ```mlir
    %y = llm.clip %x low(%a) high(%b) : (tensor<?xf32>, tensor<f32>, tensor<f32>) -> tensor<?xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, Optional<LLM_Tensor>:$low, Optional<LLM_Tensor>:$high);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = [{
    $input (`low` `(` $low^ `)`)? (`high` `(` $high^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions and matrix products
//===----------------------------------------------------------------------===//

def LLM_ArgMaxOp : LLM_PureOp<"argmax"> {
  let summary = "Index of the largest element along an axis";
  let description = [{
    ```mlir
    %i = llm.argmax %x {axis = -1 : i64, keepdims} : tensor<?x4xf32> -> tensor<?x1xi64>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, I64Attr:$axis, UnitAttr:$keepdims,
                       UnitAttr:$select_last_index, UnitAttr:$minimum);
  let results = (outs LLM_IntTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def LLM_CumSumOp : LLM_PureOp<"cumsum", [SameOperandsAndResultType]> {
  let summary = "Running sum along an axis";
  let description = [{
    ```mlir
    %y = llm.cumsum %x {axis = 1 : i64} : tensor<?x?xi64>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def LLM_MatMulOp : LLM_PureOp<"matmul"> {
  let summary = "Matrix product with NumPy's batch rules (ONNX MatMul)";
  let description = [{
    ```mlir
    %z = llm.matmul %x, %y : (tensor<?x?x4xf32>, tensor<4x8xf32>) -> tensor<?x?x8xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$lhs, LLM_Tensor:$rhs);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_ReductionKind : I32EnumAttr<"ReductionKind", "kind of reduction", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>,
    I32EnumAttrCase<"min", 3>, I32EnumAttrCase<"prod", 4>, I32EnumAttrCase<"sum_square", 5>,
    I32EnumAttrCase<"l1", 6>, I32EnumAttrCase<"l2", 7>, I32EnumAttrCase<"log_sum", 8>,
    I32EnumAttrCase<"log_sum_exp", 9>]> {
  let cppNamespace = "::mlir::llm";
}

def LLM_ReduceOp : LLM_PureOp<"reduce"> {
  let summary = "Reduction over axes (ONNX Reduce*)";
  let description = [{
    An empty `axes` reduces nothing.

    ```mlir
    %y = llm.reduce mean %x axes [-1] keepdims : tensor<?x4xf32> -> tensor<?x1xf32>
    ```
  }];
  let arguments = (ins LLM_ReductionKind:$kind, LLM_Tensor:$input,
                       DenseI64ArrayAttr:$axes, UnitAttr:$keepdims);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = [{
    $kind $input `axes` $axes (`keepdims` $keepdims^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def LLM_SoftmaxOp : LLM_PureOp<"softmax", [SameOperandsAndResultType]> {
  let summary = "exp(x - max) / sum along an axis";
  let description = [{
    ```mlir
    %y = llm.softmax %x {axis = -1 : i64} : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, DefaultValuedAttr<I64Attr, "-1">:$axis, UnitAttr:$log);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def LLM_TopKOp : LLM_PureOp<"topk"> {
  let summary = "The k largest (or smallest) elements along an axis and their indices";
  let description = [{
    ```mlir
    %v, %i = llm.topk %x, %k {axis = -1 : i64, largest, sorted} : (tensor<?x8xf32>, tensor<1xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>)
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$k, I64Attr:$axis,
                       UnitAttr:$largest, UnitAttr:$sorted);
  let results = (outs LLM_Tensor:$values, LLM_IntTensor:$indices);
  let assemblyFormat = "$input `,` $k attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shape and data movement
//===----------------------------------------------------------------------===//

def LLM_ConcatOp : LLM_PureOp<"concat"> {
  let summary = "Join along an axis";
  let description = [{
    ```mlir
    %z = llm.concat %x, %y {axis = 0 : i64} : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Variadic<LLM_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_ConstantOfShapeOp : LLM_PureOp<"constant_of_shape"> {
  let summary = "A tensor of one value, its shape given at run time";
  let description = [{
    ```mlir
    %y = llm.constant_of_shape %s {value = dense<0.0> : tensor<1xf32>} : tensor<2xi64> -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins LLM_IntTensor:$shape, ElementsAttr:$value);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$shape attr-dict `:` type($shape) `->` type($result)";
  let hasVerifier = 1;
}

def LLM_ExpandOp : LLM_PureOp<"expand"> {
  let summary = "Broadcast to a shape (both ways, as ONNX Expand)";
  let description = [{
    ```mlir
    %y = llm.expand %x, %s : (tensor<1x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$shape);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `,` $shape attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_GatherOp : LLM_PureOp<"gather"> {
  let summary = "Slices along an axis by index (ONNX Gather)";
  let description = [{
    Negative indices count from the end; an index out of range is an error at
    run time.

    ```mlir
    %y = llm.gather %x, %i {axis = 0 : i64} : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$indices, I64Attr:$axis);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_GatherElementsOp : LLM_PureOp<"gather_elements"> {
  let summary = "Elements whose place along an axis is an index (ONNX GatherElements)";
  let description = [{
    The result has the shape of the indices, and element p of it is the element
    of the input at p with the coordinate along `axis` replaced by the index at
    p. Negative indices count from the end; an index out of range is an error at
    run time.

    ```mlir
    %y = llm.gather_elements %x, %i {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>) -> tensor<?x2xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$indices, I64Attr:$axis);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_GatherNDOp : LLM_PureOp<"gather_nd"> {
  let summary = "Slices by index tuples (ONNX GatherND)";
  let description = [{
    The last axis of the indices holds tuples into the axes of the input after
    the first `batch_dims`, which both have. Negative indices count from the end;
    an index out of range is an error at run time.

    ```mlir
    %y = llm.gather_nd %x, %i : (tensor<?x4x8xf32>, tensor<3x2xi64>) -> tensor<3x8xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$indices,
                       DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_PadOp : LLM_PureOp<"pad"> {
  let summary = "More, or fewer, elements at both ends of each axis (ONNX Pad)";
  let description = [{
    `pads` has the counts before every axis, then those behind; negative ones cut
    off. New elements are `value` (0 without one), the nearest element (`edge`),
    the input mirrored at its end elements (`reflect`) or repeated (`wrap`).

    ```mlir
    %y = llm.pad %x, %p {mode = "edge"} : (tensor<?x4xf32>, tensor<4xi64>) -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$pads, Optional<LLM_Tensor>:$value,
                       DefaultValuedAttr<StrAttr, "\"constant\"">:$mode);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $pads (`value` `(` $value^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def LLM_RangeOp : LLM_PureOp<"range"> {
  let summary = "start, start + delta, ... below limit";
  let description = [{
    ```mlir
    %y = llm.range %a, %b, %d : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
    ```
  }];
  let arguments = (ins LLM_Tensor:$start, LLM_Tensor:$limit, LLM_Tensor:$delta);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$start `,` $limit `,` $delta attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_ReshapeOp : LLM_PureOp<"reshape"> {
  let summary = "The same elements in another shape (ONNX Reshape)";
  let description = [{
    -1 in `shape` is inferred; 0 copies the input's dimension unless
    `allowzero`. Unsqueeze, Squeeze and Flatten with a static result rank are
    imported as `llm.reshape` only where the shape is a constant; else they keep
    their own ops.

    ```mlir
    %y = llm.reshape %x, %s : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<?x2x2xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$shape, UnitAttr:$allowzero);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `,` $shape attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_ScatterElementsOp : LLM_PureOp<"scatter_elements"> {
  let summary = "A copy with elements replaced at indices along an axis (ONNX ScatterElements)";
  let description = [{
    The reverse of `llm.gather_elements`: element p of the updates goes to p with
    the coordinate along `axis` replaced by the index at p, in row-major order
    where several go to one place.

    ```mlir
    %y = llm.scatter_elements %x, %i, %u {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>) -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$indices, LLM_Tensor:$updates,
                       I64Attr:$axis, DefaultValuedAttr<StrAttr, "\"none\"">:$reduction);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_ScatterNDOp : LLM_PureOp<"scatter_nd"> {
  let summary = "A copy with slices replaced by index tuples (ONNX ScatterND)";
  let description = [{
    ```mlir
    %y = llm.scatter_nd %x, %i, %u {reduction = "none"} : (tensor<4x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$indices, LLM_Tensor:$updates,
                       DefaultValuedAttr<StrAttr, "\"none\"">:$reduction);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_ShapeOp : LLM_PureOp<"shape"> {
  let summary = "The dimensions as i64, from `start` to `end`";
  let description = [{
    ```mlir
    %s = llm.shape %x : tensor<?x4xf32> -> tensor<2xi64>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, DefaultValuedAttr<I64Attr, "0">:$start,
                       OptionalAttr<I64Attr>:$end);
  let results = (outs LLM_IntTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def LLM_SliceOp : LLM_PureOp<"slice", [AttrSizedOperandSegments]> {
  let summary = "A strided part (ONNX Slice)";
  let description = [{
    ```mlir
    %y = llm.slice %x, %b, %e axes(%a) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$starts, LLM_IntTensor:$ends,
                       Optional<LLM_IntTensor>:$axes, Optional<LLM_IntTensor>:$steps);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $starts `,` $ends (`axes` `(` $axes^ `)`)? (`steps` `(` $steps^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def LLM_SplitOp : LLM_PureOp<"split"> {
  let summary = "Parts along an axis, as many as results";
  let description = [{
    Sizes come from `split`, or are equal (the last one smaller). The sizes of
    the results add up to the input's.

    ```mlir
    %a, %b = llm.split %x {axis = 1 : i64} : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>)
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, Optional<LLM_IntTensor>:$split, I64Attr:$axis);
  let results = (outs Variadic<LLM_Tensor>:$results);
  let assemblyFormat = "$input (`sizes` `(` $split^ `)`)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_SqueezeOp : LLM_PureOp<"squeeze"> {
  let summary = "Remove dimensions of size 1";
  let description = [{
    ```mlir
    %y = llm.squeeze %x axes [0] : tensor<1x4xf32> -> tensor<4xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, DenseI64ArrayAttr:$axes);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `axes` $axes attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def LLM_TileOp : LLM_PureOp<"tile"> {
  let summary = "Repeat along each axis";
  let description = [{
    ```mlir
    %y = llm.tile %x, %r : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, LLM_IntTensor:$repeats);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `,` $repeats attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_TransposeOp : LLM_PureOp<"transpose"> {
  let summary = "Permute the axes";
  let description = [{
    ```mlir
    %y = llm.transpose %x perm [0, 2, 1] : tensor<?x4x8xf32> -> tensor<?x8x4xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `perm` $perm attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_TriluOp : LLM_PureOp<"trilu"> {
  let summary = "Upper or lower triangle of the last two axes";
  let description = [{
    ```mlir
    %y = llm.trilu %x diagonal(%k) {upper} : (tensor<?x?xf32>, tensor<i64>) -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, Optional<LLM_IntTensor>:$diagonal, UnitAttr:$upper);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input (`diagonal` `(` $diagonal^ `)`)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LLM_UnsqueezeOp : LLM_PureOp<"unsqueeze"> {
  let summary = "Insert dimensions of size 1 at the result's `axes`";
  let description = [{
    ```mlir
    %y = llm.unsqueeze %x axes [0] : tensor<4xf32> -> tensor<1x4xf32>
    ```
  }];
  let arguments = (ins LLM_Tensor:$input, DenseI64ArrayAttr:$axes);
  let results = (outs LLM_Tensor:$result);
  let assemblyFormat = "$input `axes` $axes attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif // LLM_OPS
