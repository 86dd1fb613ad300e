#!/usr/bin/env python3
"""Small random decoders in spellings that our exporters do not write.

    variants.py {gpt,parallel,capped} OUT.onnx

gpt       as torch traces GPT-2: learned positions counted from the mask, layer
          norm in primitives, products of flattened rows (Gemm) with bias, query,
          key and value packed, keys transposed straight to [B, H, D, T], a bool
          mask that selects, GELU in its tanh form, caches concatenated.
parallel  no cache inputs and no mask input: positions from Range, cos and sin
          from an outer product of frequencies, interleaved pairs, a part of
          each head rotated, an additive triangle, attention and MLP side by
          side, GELU through erf, an untied head.
capped    scores and logits capped, a scaled embedding, a window, scales of norms
          computed as 1 + w, norms behind attention and MLP too, the query
          scaled instead of the scores, position ids, full-width tables, additive masks by products.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HIDDEN, HEADS, SIZE, LAYERS, POSITIONS = 97, 32, 4, 8, 2, 128
END = np.iinfo(np.int64).max
LOWEST = float(np.finfo(np.float32).min)


class Graph:
    def __init__(self, seed):
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.random = np.random.default_rng(seed)

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.nodes.append(helper.make_node(kind, [self.name(i) for i in inputs], names, f"/{len(self.nodes)}/{kind}", **attributes))
        return names[0] if len(names) == 1 else names

    def name(self, value):
        if isinstance(value, str):
            return value
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape, scale=None):
        array = self.random.standard_normal(shape) * (scale or shape[0] ** -0.5)
        return self.name(array.astype(np.float32))

    def vector(self, size, mean=1.0):
        return self.name((mean + 0.1 * self.random.standard_normal(size)).astype(np.float32))

    def dim(self, value, axis):
        return self.op("Gather", self.op("Shape", value), np.int64(axis), axis=0)

    def vec(self, *dims):
        parts = [self.op("Unsqueeze", d, [0]) if isinstance(d, str) else np.array([d], np.int64) for d in dims]
        return self.op("Concat", *parts, axis=0)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)

    def input(self, name, kind, shape):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name, shape):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))


def slice_last(g, x, begin, end, step=1):
    return g.op("Slice", x, [begin], [end], np.array([3]), np.array([step]))


def gpt(g):
    ids = g.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    mask = g.input("attention_mask", TensorProto.INT64, ["batch", "past + sequence"])
    for i in range(LAYERS):
        for part in ("key", "value"):
            g.input(f"past_key_values.{i}.{part}", TensorProto.FLOAT, ["batch", HEADS, "past", SIZE])
    table = g.weight(VOCABULARY, HIDDEN, scale=1.0)
    batch, length = g.dim(ids, 0), g.dim(ids, 1)
    past = g.dim("past_key_values.0.key", 2)
    total = g.op("Add", past, length)

    count = g.op("Sub", g.op("CumSum", mask, np.int64(1)), np.int64(1))
    count = g.op("Where", g.op("Equal", mask, np.int64(0)), np.int64(1), count)
    positions = g.op("Slice", count, g.op("Unsqueeze", past, [0]), [END], np.array([1]))
    h = g.op("Add", g.op("Gather", table, ids), g.op("Gather", g.weight(POSITIONS, HIDDEN, scale=1.0), positions))

    queries = g.op("Unsqueeze", g.op("Range", past, total, np.int64(1)), [1])
    keys = g.op("Unsqueeze", g.op("Range", np.int64(0), total, np.int64(1)), [0])
    order = g.op("LessOrEqual", keys, queries)
    padding = g.op("Not", g.op("Equal", g.op("Unsqueeze", mask, [1, 2]), np.int64(0)))
    visible = g.op("And", padding, order)

    def norm(x):
        d = g.op("Sub", x, g.op("ReduceMean", x, np.array([-1])))
        e = g.op("Sub", x, g.op("ReduceMean", x, np.array([-1])))
        variance = g.op("ReduceMean", g.op("Pow", e, np.float32(2)), np.array([-1]))
        n = g.op("Div", d, g.op("Sqrt", g.op("Add", variance, np.float32(1e-5))))
        return g.op("Add", g.op("Mul", n, g.vector(HIDDEN)), g.vector(HIDDEN, 0.0))

    def gemm(x, inputs, outputs):
        flat = g.op("Reshape", x, g.vec(-1, inputs))
        y = g.op("Gemm", flat, g.weight(inputs, outputs), g.vector(outputs, 0.0))
        return g.op("Reshape", y, g.vec(batch, length, outputs))

    for i in range(LAYERS):
        q, k, v = g.op("Split", gemm(norm(h), HIDDEN, 3 * HIDDEN), np.array([HIDDEN] * 3), outputs=3, axis=2)
        q, k, v = (g.op("Reshape", x, g.vec(batch, length, HEADS, SIZE)) for x in (q, k, v))
        q, k, v = (g.op("Transpose", x, perm=[0, 2, 1, 3]) for x in (q, k, v))
        k = g.op("Concat", f"past_key_values.{i}.key", k, outputs=[f"present.{i}.key"], axis=-2)
        v = g.op("Concat", f"past_key_values.{i}.value", v, outputs=[f"present.{i}.value"], axis=-2)
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        size = g.op("Cast", g.dim(q, 3), to=TensorProto.FLOAT)
        scores = g.op("Div", scores, g.op("Sqrt", size))
        scores = g.op("Where", visible, scores, np.float32(LOWEST))
        y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.vec(batch, length, HIDDEN))
        h = g.op("Add", gemm(y, HIDDEN, HIDDEN), h)
        x = gemm(norm(h), HIDDEN, 2 * HIDDEN)
        cubed = g.op("Mul", g.op("Pow", x, np.float32(3)), np.float32(0.044715))
        inner = g.op("Mul", g.op("Add", x, cubed), np.float32(np.sqrt(2 / np.pi)))
        x = g.op("Mul", g.op("Mul", x, np.float32(0.5)), g.op("Add", g.op("Tanh", inner), np.float32(1)))
        h = g.op("Add", h, gemm(x, 2 * HIDDEN, HIDDEN))
    g.op("MatMul", norm(h), g.op("Transpose", table, perm=[1, 0]), outputs=["logits"])
    g.output("logits", ["batch", "sequence", VOCABULARY])
    for i in range(LAYERS):
        for part in ("key", "value"):
            g.output(f"present.{i}.{part}", ["batch", HEADS, "past + sequence", SIZE])


def parallel(g):
    ids = g.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    batch, length = g.dim(ids, 0), g.dim(ids, 1)
    h = g.op("Gather", g.weight(VOCABULARY, HIDDEN, scale=1.0), ids)
    rotary = 4
    positions = g.op("Cast", g.op("Range", np.int64(0), length, np.int64(1)), to=TensorProto.FLOAT)
    frequencies = (100.0 ** -(np.arange(0, rotary, 2) / rotary)).astype(np.float32)
    angles = g.op("MatMul", g.op("Unsqueeze", positions, [1]), frequencies[None])
    # Each angle twice, side by side.
    wide = g.op("Unsqueeze", angles, [2])
    angles = g.op("Reshape", g.op("Concat", wide, wide, axis=2), g.vec(length, rotary))
    cos = g.op("Unsqueeze", g.op("Cos", angles), [0, 2])  # [1, S, 1, rotary]
    sin = g.op("Unsqueeze", g.op("Sin", angles), [0, 2])
    full = g.op("ConstantOfShape", g.vec(length, length), value=numpy_helper.from_array(np.array([LOWEST], np.float32)))
    triangle = g.op("Trilu", full, np.int64(1), upper=1)

    def rope(x):
        turn, rest = slice_last(g, x, 0, rotary), slice_last(g, x, rotary, END)
        even, odd = slice_last(g, turn, 0, END, 2), slice_last(g, turn, 1, END, 2)
        pairs = g.op("Concat", g.op("Unsqueeze", g.op("Neg", odd), [-1]), g.op("Unsqueeze", even, [-1]), axis=-1)
        turned = g.op("Reshape", pairs, g.op("Shape", turn))
        turn = g.op("Add", g.op("Mul", turn, cos), g.op("Mul", turned, sin))
        return g.op("Concat", turn, rest, axis=-1)

    for _ in range(LAYERS):
        n = g.op("LayerNormalization", h, g.vector(HIDDEN), g.vector(HIDDEN, 0.0), axis=-1, epsilon=1e-5)
        q, k, v = (g.op("MatMul", n, g.weight(HIDDEN, HIDDEN)) for _ in range(3))
        q, k, v = (g.op("Reshape", x, g.vec(batch, length, HEADS, SIZE)) for x in (q, k, v))
        q, k = rope(q), rope(k)
        q, v = (g.op("Transpose", x, perm=[0, 2, 1, 3]) for x in (q, v))
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 3, 1]))
        scores = g.op("Add", triangle, g.op("Mul", scores, np.float32(SIZE**-0.5)))
        y = g.op("MatMul", g.op("Softmax", scores, axis=3), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.vec(batch, length, HIDDEN))
        y = g.op("MatMul", y, g.weight(HIDDEN, HIDDEN))
        x = g.op("Add", g.vector(2 * HIDDEN, 0.0), g.op("MatMul", n, g.weight(HIDDEN, 2 * HIDDEN)))
        e = g.op("Add", g.op("Erf", g.op("Div", x, np.float32(np.sqrt(2)))), np.float32(1))
        x = g.op("Mul", g.op("Mul", x, e), np.float32(0.5))
        x = g.op("MatMul", x, g.weight(2 * HIDDEN, HIDDEN))
        h = g.op("Add", g.op("Add", y, x), h)
    h = g.op("LayerNormalization", h, g.vector(HIDDEN), g.vector(HIDDEN, 0.0), axis=-1, epsilon=1e-5)
    g.op("Add", g.op("MatMul", h, g.weight(HIDDEN, VOCABULARY)), g.vector(VOCABULARY, 0.0), outputs=["logits"])
    g.output("logits", ["batch", "sequence", VOCABULARY])


def capped(g):
    kv_heads, window, cap = 2, 5, 20.0
    ids = g.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    mask = g.input("attention_mask", TensorProto.INT64, ["batch", "total"])
    positions = g.input("position_ids", TensorProto.INT64, ["batch", "sequence"])
    for i in range(LAYERS):
        for part in ("key", "value"):
            g.input(f"past_key_values.{i}.{part}", TensorProto.FLOAT, ["batch", kv_heads, "past", SIZE])
    table = g.weight(VOCABULARY, HIDDEN, scale=0.3)
    batch, length, total = g.dim(ids, 0), g.dim(ids, 1), g.dim(mask, 1)
    h = g.op("Mul", g.op("Gather", table, ids), np.float32(HIDDEN**0.5))
    angles = np.outer(np.arange(POSITIONS), 50.0 ** -(np.arange(0, SIZE, 2) / SIZE))
    angles = np.concatenate([angles, angles], axis=-1)
    cos = g.op("Unsqueeze", g.op("Gather", np.cos(angles), positions), [1])
    sin = g.op("Unsqueeze", g.op("Gather", np.sin(angles), positions), [1])
    past = g.op("Sub", total, length)
    queries = g.op("Reshape", g.op("Range", past, total, np.int64(1)), np.array([-1, 1]))
    keys = g.op("Range", np.int64(0), total, np.int64(1))
    hidden = g.op("Or", g.op("Greater", keys, queries), g.op("LessOrEqual", keys, g.op("Sub", queries, np.int64(window))))
    order = g.op("Mul", g.op("Cast", hidden, to=TensorProto.FLOAT), np.float32(LOWEST))
    empty = g.op("Sub", np.float32(1), g.op("Cast", g.op("Unsqueeze", mask, [1, 2]), to=TensorProto.FLOAT))
    additive = g.op("Max", g.op("Add", order, g.op("Mul", empty, np.float32(LOWEST))), np.float32(LOWEST))

    def norm(x):
        inverse = g.op("Pow", g.op("Add", g.op("ReduceMean", g.op("Mul", x, x), np.array([-1])), np.float32(1e-6)), np.float32(-0.5))
        return g.op("Mul", g.op("Mul", inverse, x), g.op("Add", g.vector(HIDDEN, 0.0), np.float32(1)))

    def heads(x, count):
        x = g.op("Reshape", x, g.vec(batch, length, count, SIZE))
        x = g.op("Transpose", x, perm=[0, 2, 1, 3])
        turned = g.op("Concat", g.op("Neg", slice_last(g, x, SIZE // 2, END)), slice_last(g, x, 0, SIZE // 2), axis=-1)
        return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))

    def repeat(x):
        b, t = g.dim(x, 0), g.dim(x, 2)
        x = g.op("Expand", g.op("Unsqueeze", x, [2]), g.vec(b, kv_heads, HEADS // kv_heads, t, SIZE))
        return g.op("Reshape", x, g.vec(b, HEADS, t, SIZE))

    for i in range(LAYERS):
        n = norm(h)
        q = heads(g.op("MatMul", n, g.weight(HIDDEN, HEADS * SIZE)), HEADS)
        k = heads(g.op("MatMul", n, g.weight(HIDDEN, kv_heads * SIZE)), kv_heads)
        v = g.op("Reshape", g.op("MatMul", n, g.weight(HIDDEN, kv_heads * SIZE)), g.vec(batch, length, kv_heads, SIZE))
        v = g.op("Transpose", v, perm=[0, 2, 1, 3])
        k = g.op("Concat", f"past_key_values.{i}.key", k, outputs=[f"present.{i}.key"], axis=2)
        v = g.op("Concat", f"past_key_values.{i}.value", v, outputs=[f"present.{i}.value"], axis=2)
        scores = g.op("MatMul", g.op("Mul", q, np.float32(SIZE**-0.5)), g.op("Transpose", repeat(k), perm=[0, 1, 3, 2]))
        scores = g.op("Mul", g.op("Tanh", g.op("Div", scores, np.float32(cap))), np.float32(cap))
        y = g.op("MatMul", g.op("Softmax", g.op("Add", scores, additive), axis=-1), repeat(v))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.vec(batch, length, HEADS * SIZE))
        h = g.op("Add", h, norm(g.op("MatMul", y, g.weight(HEADS * SIZE, HIDDEN))))
        n = norm(h)
        gate, up = (g.op("MatMul", n, g.weight(HIDDEN, 2 * HIDDEN)) for _ in range(2))
        gate = g.op("Mul", gate, g.op("Sigmoid", g.op("Mul", gate, np.float32(1.702))))
        h = g.op("Add", h, norm(g.op("MatMul", g.op("Mul", gate, up), g.weight(2 * HIDDEN, HIDDEN))))
    logits = g.op("MatMul", norm(h), g.op("Transpose", table, perm=[1, 0]))
    g.op("Mul", g.op("Tanh", g.op("Div", logits, np.float32(cap))), np.float32(cap), outputs=["logits"])
    g.output("logits", ["batch", "sequence", VOCABULARY])
    for i in range(LAYERS):
        for part in ("key", "value"):
            g.output(f"present.{i}.{part}", ["batch", kv_heads, "total", SIZE])


if __name__ == "__main__":
    kind, path = sys.argv[1:]
    graph = Graph(seed=7)
    {"gpt": gpt, "parallel": parallel, "capped": capped}[kind](graph)
    graph.save(path)
