# Part of the LLM compiler, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases for operators that ONNX has none or few for, with onnxruntime as the oracle."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F32, F16, I32, I64 = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.INT32,
    TensorProto.INT64,
)
MICROSOFT = "com.microsoft"


def infer_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


class Builder:
    """One node, its inputs and its initializers."""

    def __init__(self, name, operator, domain=MICROSOFT, **attributes):
        self.name, self.operator, self.domain = name, operator, domain
        self.attributes = attributes
        self.names, self.inputs, self.initializers = [], [], []

    def input(self, name, array):
        self.names.append(name)
        self.inputs.append((name, array))
        return self

    def constant(self, name, array, onnx_type=None, dims=None):
        """An initializer; `onnx_type` and `dims` where `array` is packed."""
        self.names.append(name)
        if onnx_type:
            tensor = helper.make_tensor(name, onnx_type, dims, array.tobytes(), True)
        else:
            tensor = numpy_helper.from_array(array, name)
        self.initializers.append(tensor)
        return self

    def absent(self, count=1):
        self.names += [""] * count
        return self

    def case(self, outputs, rtol=1e-4, atol=1e-5):
        """`outputs` are (name, element type, rank); an empty name is left out."""
        node = helper.make_node(
            self.operator,
            self.names,
            [name for name, _, _ in outputs],
            name=self.name,
            domain=self.domain,
            **self.attributes,
        )
        graph = helper.make_graph(
            [node],
            self.name,
            [
                helper.make_tensor_value_info(name, infer_type(array), array.shape)
                for name, array in self.inputs
            ],
            [
                helper.make_tensor_value_info(name, kind, [None] * rank)
                for name, kind, rank in outputs
                if name
            ],
            self.initializers,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)],
            ir_version=10,
        )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, ["CPUExecutionProvider"]
        )
        expected = session.run(None, dict(self.inputs))
        return (self.name, model, [a for _, a in self.inputs], expected, rtol, atol)


def pack(codes, bits):
    """Codes packed low bits first along the last axis, each row to a byte."""
    per = 8 // bits
    pad = -codes.shape[-1] % per
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, pad)])
    codes = codes.reshape(*codes.shape[:-1], -1, per).astype(np.uint8)
    shifts = np.arange(per, dtype=np.uint8) * bits
    return np.bitwise_or.reduce(codes << shifts, axis=-1).astype(np.uint8)


def matmul_nbits(rng):
    for bits, block, k, n, zeros, bias in [
        (4, 32, 64, 6, None, False),
        (4, 32, 40, 5, "packed", False),
        (4, 16, 96, 3, "packed", True),
        (4, 128, 130, 4, "float", False),
        (8, 32, 64, 4, None, False),
        (8, 32, 40, 4, "packed", False),
    ]:
        groups = -(-k // block)
        codes = rng.integers(0, 1 << bits, (n, groups, block))
        builder = Builder(
            f"ort_matmul_nbits_{bits}bits_block{block}_k{k}_{zeros}_{bias}",
            "MatMulNBits",
            K=k,
            N=n,
            bits=bits,
            block_size=block,
        )
        builder.input("a", rng.standard_normal((2, 3, k), dtype=np.float32))
        builder.constant("b", pack(codes, bits))
        builder.constant("scales", rng.random((n, groups), dtype=np.float32).reshape(-1))
        if zeros == "packed":
            z = pack(rng.integers(0, 1 << bits, (n, groups)), bits)
            builder.constant("zero_points", z.reshape(-1))
        elif zeros == "float":
            z = rng.random((n, groups), dtype=np.float32) * (1 << bits)
            builder.constant("zero_points", z.reshape(-1))
        elif bias:
            builder.absent()
        if bias:
            builder.absent()
            builder.constant("bias", rng.standard_normal(n, dtype=np.float32))
        yield builder.case([("y", F32, 3)], rtol=1e-3, atol=1e-3)


def gather_block_quantized(rng):
    for signed, with_zero in [(False, True), (False, False), (True, False)]:
        v, k, block = 7, 32, 16
        codes = rng.integers(0, 16, (v, k))
        kind = TensorProto.INT4 if signed else TensorProto.UINT4
        builder = Builder(
            f"ort_gather_block_quantized_{'i4' if signed else 'u4'}_{with_zero}",
            "GatherBlockQuantized",
            block_size=block,
            gather_axis=0,
            quantize_axis=1,
        )
        builder.constant("data", pack(codes, 4), kind, [v, k])
        builder.input("indices", np.array([[0, 6, 2], [3, 3, 1]], np.int64))
        builder.constant("scales", rng.random((v, k // block), dtype=np.float32))
        if with_zero:
            zero = pack(rng.integers(0, 16, (1, v * k // block)), 4)
            builder.constant("zero_points", zero, kind, [v, k // block])
        yield builder.case([("y", F32, 3)])


def group_query_attention(rng):
    heads, kv, size = 4, 2, 16

    def normal(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    for name, batch, seq, past, lengths, extra in [
        ("prompt", 2, 5, 0, [5, 5], {}),
        ("decode", 2, 1, 6, [7, 4], {}),
        ("chunk", 1, 3, 4, [7], {}),
        ("rotary", 2, 1, 6, [7, 5], {"do_rotary": 1}),
        ("rotary_interleaved", 1, 4, 0, [4], {"do_rotary": 1, "rotary_interleaved": 1}),
        ("rotary_prompt", 1, 4, 0, [4], {"do_rotary": 1}),
        ("window", 1, 1, 9, [10], {"local_window_size": 4}),
        ("window_prompt", 1, 8, 0, [8], {"local_window_size": 3}),
        ("softcap", 1, 3, 0, [3], {"softcap": 2.0}),
        ("scale", 1, 3, 0, [3], {"scale": 0.5}),
        ("smooth", 1, 3, 0, [3], {"smooth_softmax": 1}),
        ("packed", 1, 3, 0, [3], {"packed": True}),
        ("packed_rotary", 1, 1, 4, [5], {"packed": True, "do_rotary": 1}),
        ("bias", 1, 3, 2, [5], {"bias": True}),
        ("sink", 1, 3, 0, [3], {"sink": True}),
        ("positions", 1, 3, 2, [5], {"do_rotary": 1, "positions": True}),
    ]:
        options = dict(extra)
        packed = options.pop("packed", False)
        bias = options.pop("bias", False)
        sink = options.pop("sink", False)
        positions = options.pop("positions", False)
        total = max(lengths)
        builder = Builder(
            f"ort_group_query_attention_{name}",
            "GroupQueryAttention",
            num_heads=heads,
            kv_num_heads=kv,
            **options,
        )
        if packed:
            builder.input("query", normal(batch, seq, (heads + 2 * kv) * size))
            builder.absent(2)
        else:
            builder.input("query", normal(batch, seq, heads * size))
            builder.input("key", normal(batch, seq, kv * size))
            builder.input("value", normal(batch, seq, kv * size))
        builder.input("past_key", normal(batch, kv, past, size))
        builder.input("past_value", normal(batch, kv, past, size))
        builder.input("seqlens_k", np.array(lengths, np.int32) - 1)
        builder.input("total_sequence_length", np.array(total, np.int32))
        if options.get("do_rotary"):
            angles = rng.random((16, size // 2), dtype=np.float32) * 6
            builder.input("cos_cache", np.cos(angles))
            builder.input("sin_cache", np.sin(angles))
        elif positions or bias or sink:
            builder.absent(2)
        if positions:
            builder.input("position_ids", np.array([[4, 1, 9]], np.int64))
        elif bias or sink:
            builder.absent()
        if bias:
            builder.input("attention_bias", normal(batch, 1, seq, total))
        elif sink:
            builder.absent()
        if sink:
            builder.input("head_sink", normal(heads))
        case = builder.case(
            [("output", F32, 3), ("present_key", F32, 4), ("present_value", F32, 4)]
        )
        if min(lengths) < total:
            # What lies behind a shorter sequence is nobody's.
            del case[1].graph.output[1:], case[3][1:]
        yield case


def norms(rng):
    def normal(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    yield (
        Builder("ort_simplified_layer_norm", "SimplifiedLayerNormalization", "", axis=-1)
        .input("x", normal(2, 3, 8))
        .input("scale", normal(8))
        .case([("y", F32, 3)])
    )
    for operator, bias in [
        ("SkipSimplifiedLayerNormalization", False),
        ("SkipSimplifiedLayerNormalization", True),
        ("SkipLayerNormalization", False),
        ("SkipLayerNormalization", True),
    ]:
        builder = Builder(f"ort_{operator.lower()}_{bias}", operator, epsilon=1e-5)
        builder.input("x", normal(2, 3, 8)).input("skip", normal(2, 3, 8))
        builder.input("gamma", normal(8))
        if operator == "SkipLayerNormalization":
            builder.input("beta", normal(8))
        if bias:
            builder.input("bias", normal(8))
        yield builder.case([("y", F32, 3), ("", 0, 0), ("", 0, 0), ("sum", F32, 3)])


def rotary(rng):
    for name, attributes in [
        ("plain", {}),
        ("interleaved", {"interleaved": 1}),
        ("partial", {"rotary_embedding_dim": 4, "num_heads": 2}),
    ]:
        half = 2 if name == "partial" else 4
        angles = rng.random((10, half), dtype=np.float32) * 6
        yield (
            Builder(f"ort_rotary_embedding_{name}", "RotaryEmbedding", **attributes)
            .input("x", rng.standard_normal((2, 3, 16), dtype=np.float32))
            .input("position_ids", np.array([[0, 1, 2], [7, 9, 3]], np.int64))
            .input("cos", np.cos(angles))
            .input("sin", np.sin(angles))
            .case([("y", F32, 3)])
        )


def activations(rng):
    x = rng.standard_normal((3, 8), dtype=np.float32) * 3
    bias = rng.standard_normal(8, dtype=np.float32)
    yield Builder("ort_gelu", "Gelu").input("x", x).case([("y", F32, 2)])
    yield Builder("ort_quick_gelu", "QuickGelu", alpha=1.5).input("x", x).case(
        [("y", F32, 2)]
    )
    for operator in ["BiasGelu", "FastGelu"]:
        yield (
            Builder(f"ort_{operator.lower()}", operator)
            .input("x", x)
            .input("bias", bias)
            .case([("y", F32, 2)])
        )
    for name, attributes in [
        ("plain", {}),
        ("alpha", {"alpha": 0.5}),
        ("transposed", {"transB": 1}),
    ]:
        b = rng.standard_normal((2, 4, 6), dtype=np.float32)
        if "transB" in attributes:
            b = np.ascontiguousarray(b.transpose(0, 2, 1))
        yield (
            Builder(f"ort_fused_matmul_{name}", "FusedMatMul", **attributes)
            .input("a", rng.standard_normal((2, 3, 4), dtype=np.float32))
            .input("b", b)
            .case([("y", F32, 3)])
        )


def einsum(rng):
    for name, equation, shapes in [
        ("groups", "abcd,cdef->abef", [(2, 3, 4, 5), (4, 5, 2, 2)]),
        ("ellipsis", "...ij,...jk->...ik", [(2, 1, 3, 4), (2, 5, 4, 2)]),
        ("implicit", "ba,ac", [(2, 3), (3, 4)]),
        ("three", "ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("outer", "i,j->ji", [(3,), (4,)]),
        ("summed", "ijk,j->k", [(2, 3, 4), (3,)]),
        ("attention", "bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]),
        ("diagonals", "iij,jj->i", [(3, 3, 2), (2, 2)]),
    ]:
        builder = Builder(f"ort_einsum_{name}", "Einsum", "", equation=equation)
        for i, shape in enumerate(shapes):
            builder.input(f"x{i}", rng.standard_normal(shape, dtype=np.float32))
        letters = equation.replace(" ", "").partition("->")[2] or "bc"
        rank = len(letters.replace("...", "")) + (2 if "..." in letters else 0)
        yield builder.case([("y", F32, rank)])


def indexing(rng):
    x = rng.standard_normal((3, 4), dtype=np.float32)
    for mode in ["constant", "edge", "reflect", "wrap"]:
        for name, pads in [("", [1, 2, 0, 3]), ("_cut", [-1, 1, 0, -2]), ("_long", [2, 0, 0, 3])]:
            if mode != "constant" and name == "_cut":
                continue  # ONNX does not say what is mirrored or repeated then.
            yield (
                Builder(f"ort_pad_{mode}{name}", "Pad", "", mode=mode)
                .input("x", x)
                .input("pads", np.array(pads, np.int64))
                .case([("y", F32, 2)])
            )
    rows = np.array([[0, -1, 2], [1, 1, -3]], np.int32)
    yield (
        Builder("ort_gather_elements", "GatherElements", "", axis=-1)
        .input("x", x.astype(np.float16))
        .input("indices", rows)
        .case([("y", F16, 2)])
    )
    yield (
        Builder("ort_gather_nd", "GatherND", "")
        .input("x", (x * 10).astype(np.int64))
        .input("indices", np.array([[[0, -1]], [[-3, 2]]], np.int64))
        .case([("y", I64, 2)])
    )
    for reduction in ["none", "add", "mul", "max", "min"]:
        yield (
            Builder(
                f"ort_scatter_elements_{reduction}", "ScatterElements", "", reduction=reduction
            )
            .input("x", (x * 10).astype(np.int32))
            .input("indices", np.array([[0, -1, 2, 2]], np.int64))
            .input("updates", np.array([[7, -8, 9, 2]], np.int32))
            .case([("y", I32, 2)])
        )


def integer_products(rng):
    codes = rng.integers(0, 256, (2, 3, 8)).astype(np.uint8)
    for name, matrix in [
        ("u8", rng.integers(0, 256, (8, 4)).astype(np.uint8)),
        # Without VNNI, onnxruntime adds two such products in 16 bits, saturating.
        ("s8", rng.integers(-64, 64, (8, 4)).astype(np.int8)),
    ]:
        zeros = matrix[0].copy()
        for columns in (False, True):
            yield (
                Builder(f"ort_matmul_integer_{name}_{columns}", "MatMulInteger", "")
                .input("a", codes)
                .input("b", matrix)
                .input("a_zero_point", np.array(131, np.uint8))
                .input("b_zero_point", zeros if columns else zeros[:1])
                .case([("y", I32, 3)])
            )
    for name, x in [
        ("both", rng.standard_normal((3, 5), dtype=np.float32)),
        ("positive", rng.random((3, 5), dtype=np.float32) + 1),
        ("zero", np.zeros((2, 2), np.float32)),
    ]:
        yield (
            Builder(f"ort_dynamic_quantize_{name}", "DynamicQuantizeLinear", "")
            .input("x", x)
            .case([("y", TensorProto.UINT8, 2), ("s", F32, 0), ("z", TensorProto.UINT8, 0)])
        )


def cases():
    """(name, model, inputs, outputs, rtol, atol) of every case; fixed seeds."""
    for family in [
        matmul_nbits,
        gather_block_quantized,
        group_query_attention,
        norms,
        rotary,
        activations,
        einsum,
        indexing,
        integer_products,
    ]:
        yield from family(np.random.default_rng(len(family.__name__)))
