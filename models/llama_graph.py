"""A Llama decoder as an ONNX graph, in either of two spellings.

`export_decoder` writes `model.onnx` for any model of the Llama family from its
configuration and a function that hands out weights. The composite spelling uses
the operators that opset 23 has for the purpose (RMSNormalization,
RotaryEmbedding, Attention); the decomposed spelling writes the same model as
torch.onnx does when it traces the eager Hugging Face modules. The two refer to
the same initializers, bit for bit. README.md beside this file lists both graphs
operator by operator.

Shapes below: B batch, S new tokens, P cached tokens, T = P + S, H query heads,
K key/value heads, D head size, E hidden size.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from onnx_writer import ONNX_TYPE, OnnxWriter

OPSET = 23
IR_VERSION = 11
PRODUCER = "llama_graph"

# The names that Optimum gives to the symbolic dimensions.
BATCH = "batch_size"
SEQUENCE = "sequence_length"
PAST = "past_sequence_length"
TOTAL = "past_sequence_length + sequence_length"


@dataclass(frozen=True)
class LlamaConfig:
    """The hyperparameters, by their Hugging Face names."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    tie_word_embeddings: bool

    def __post_init__(self):
        for field in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                      "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings"):
            if getattr(self, field) <= 0:
                raise ValueError(f"{field} must be positive, got {getattr(self, field)}")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(f"{self.num_attention_heads} attention heads cannot share "
                             f"{self.num_key_value_heads} key/value heads evenly")
        if self.head_dim % 2:
            raise ValueError(f"rotary embedding needs an even head size, got {self.head_dim}")

    def weight_shapes(self):
        """Every weight's name and shape, in file order; linears are [out, in]."""
        e, f = self.hidden_size, self.intermediate_size
        q, kv = self.num_attention_heads * self.head_dim, self.num_key_value_heads * self.head_dim
        shapes = {"model.embed_tokens.weight": (self.vocab_size, e)}
        for i in range(self.num_hidden_layers):
            layer = f"model.layers.{i}"
            shapes |= {
                f"{layer}.input_layernorm.weight": (e,),
                f"{layer}.self_attn.q_proj.weight": (q, e),
                f"{layer}.self_attn.k_proj.weight": (kv, e),
                f"{layer}.self_attn.v_proj.weight": (kv, e),
                f"{layer}.self_attn.o_proj.weight": (e, q),
                f"{layer}.post_attention_layernorm.weight": (e,),
                f"{layer}.mlp.gate_proj.weight": (f, e),
                f"{layer}.mlp.up_proj.weight": (f, e),
                f"{layer}.mlp.down_proj.weight": (e, f),
            }
        shapes["model.norm.weight"] = (e,)
        if not self.tie_word_embeddings:
            shapes["lm_head.weight"] = (self.vocab_size, e)
        return shapes

    def to_json(self, dtype, **token_ids):
        """config.json as Hugging Face writes it for this architecture."""
        fields = {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "attention_bias": False,
            "hidden_act": "silu",
            "mlp_bias": False,
            "dtype": np.dtype(dtype).name,
            "use_cache": True,
        } | vars(self) | token_ids
        return dict(sorted(fields.items()))


def rope_tables(config, dtype, frequency_factors=None):
    """cos and sin of position × inverse frequency, each [positions, D/2].

    Computed in double precision and rounded once. `frequency_factors` [D/2]
    divide the frequencies (Llama 3's long-context scaling).
    """
    half = np.arange(0, config.head_dim, 2, dtype=np.float64)
    frequencies = config.rope_theta ** (-half / config.head_dim)
    if frequency_factors is not None:
        frequencies = frequencies / frequency_factors.astype(np.float64)
    angles = np.outer(np.arange(config.max_position_embeddings, dtype=np.float64), frequencies)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def rows_to_half_split(weight, heads):
    """Reorders the rows of a q or k projection from rotary pairs (2i, 2i+1) to
    pairs (i, i + D/2), the order of Hugging Face.

    Within a head, row 2i + j moves to j·D/2 + i. Attention scores are dot
    products over a head, so they do not notice as long as q and k agree.
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def export_decoder(directory, config, weights, dtype=np.float32, decomposed=False, inline=False,
                   frequency_factors=None, metadata=None):
    """Writes OUTDIR/model.onnx (and model.onnx.data) and returns its path.

    `weights(name)` returns the weight of that name and of the shape that
    `config.weight_shapes()` states; it is called once for each, in that order.
    Weights, activations and cache are of `dtype`.
    """
    writer = OnnxWriter(directory, OPSET, IR_VERSION, inline)
    spelling = DecomposedSpelling if decomposed else CompositeSpelling
    spelling(writer, config, weights, np.dtype(dtype), frequency_factors).build()
    return writer.finish("main_graph", PRODUCER, metadata or {})


class _Spelling:
    """The parts of the graph that do not differ between the spellings."""

    constants_as_nodes = False

    def __init__(self, writer, config, weights, dtype, frequency_factors):
        self.writer = writer
        self.config = config
        self.dtype = dtype
        self._weights = weights
        self._frequency_factors = frequency_factors
        self._shapes = config.weight_shapes()

    def build(self):
        w, c = self.writer, self.config
        cache_shape = [BATCH, c.num_key_value_heads, PAST, c.head_dim]
        w.add_input("input_ids", np.int64, [BATCH, SEQUENCE])
        w.add_input("attention_mask", np.int64, [BATCH, TOTAL])
        w.add_input("position_ids", np.int64, [BATCH, SEQUENCE])
        for i in range(c.num_hidden_layers):
            w.add_input(f"past_key_values.{i}.key", self.dtype, cache_shape)
            w.add_input(f"past_key_values.{i}.value", self.dtype, cache_shape)

        w.scope = "/model"
        embedding = self.weight("model.embed_tokens.weight")
        cos, sin = rope_tables(c, self.dtype, self._frequency_factors)
        self.cos_table = w.weight("model.rotary_emb.cos_cached", cos)
        self.sin_table = w.weight("model.rotary_emb.sin_cached", sin)
        hidden = w.node("Gather", [embedding, "input_ids"], name="embed_tokens/Gather")
        self.prologue()
        for i in range(c.num_hidden_layers):
            hidden = self.layer(i, hidden)
        w.scope = "/model/norm"
        hidden = self.rms_norm(hidden, "model.norm.weight")
        w.scope = "/lm_head"
        if c.tie_word_embeddings:
            head = w.node("Transpose", [embedding], perm=[1, 0])
        else:
            head = self.linear_weight("lm_head.weight")
        w.node("MatMul", [hidden, head], outputs=["logits"])

        w.add_output("logits", self.dtype, [BATCH, SEQUENCE, c.vocab_size])
        cache_shape[2] = TOTAL
        for i in range(c.num_hidden_layers):
            w.add_output(f"present.{i}.key", self.dtype, cache_shape)
            w.add_output(f"present.{i}.value", self.dtype, cache_shape)

    def layer(self, index, hidden):
        w, name = self.writer, f"model.layers.{index}"
        scope = f"/model/layers.{index}"

        w.scope = f"{scope}/input_layernorm"
        normed = self.rms_norm(hidden, f"{name}.input_layernorm.weight")
        w.scope = f"{scope}/self_attn"
        q = self.linear(normed, f"{name}.self_attn.q_proj")
        k = self.linear(normed, f"{name}.self_attn.k_proj")
        v = self.linear(normed, f"{name}.self_attn.v_proj")
        attended = self.attention(index, normed, q, k, v)
        attended = self.linear(attended, f"{name}.self_attn.o_proj")
        w.scope = scope
        hidden = w.node("Add", [hidden, attended])

        w.scope = f"{scope}/post_attention_layernorm"
        normed = self.rms_norm(hidden, f"{name}.post_attention_layernorm.weight")
        w.scope = f"{scope}/mlp"
        gate = self.linear(normed, f"{name}.mlp.gate_proj")
        # Opset 23 has no SiLU (Swish came with 24), so both spell it like this.
        gate = w.node("Mul", [gate, w.node("Sigmoid", [gate], name="act_fn/Sigmoid")], name="act_fn/Mul")
        up = self.linear(normed, f"{name}.mlp.up_proj")
        down = self.linear(w.node("Mul", [gate, up]), f"{name}.mlp.down_proj")
        w.scope = scope
        return w.node("Add", [hidden, down])

    def weight(self, name):
        return self.writer.weight(name, self.fetch(name))

    def linear_weight(self, name):
        """The weight of x·W: [in, out], the way tracing exporters fold it."""
        return self.writer.weight(name, self.fetch(name).T)

    def linear(self, x, name):
        module = name.rsplit(".", 1)[1]
        return self.writer.node("MatMul", [x, self.linear_weight(f"{name}.weight")], name=f"{module}/MatMul")

    def fetch(self, name):
        array = self._weights(name)
        if array.shape != self._shapes[name]:
            raise ValueError(f"{name} has shape {list(array.shape)}, expected {list(self._shapes[name])}")
        return array.astype(self.dtype, copy=False)

    def ints(self, *values):
        return self.writer.constant(values, np.int64, self.constants_as_nodes)

    def int_scalar(self, value):
        return self.writer.constant(value, np.int64, self.constants_as_nodes)

    def scalar(self, value, dtype=None):
        return self.writer.constant(value, dtype or self.dtype, self.constants_as_nodes)


class CompositeSpelling(_Spelling):
    """The operators of opset 23."""

    def prologue(self):
        """The padding mask as a bool [B, 1, S, T]; Attention adds causality.

        onnxruntime wants the query dimension spelled out, hence the Expand.
        """
        w = self.writer
        keep = w.node("Cast", ["attention_mask"], to=ONNX_TYPE[np.dtype(np.bool_)])
        keep = w.node("Unsqueeze", [keep, self.ints(1, 2)])
        length = w.node("Shape", ["input_ids"], start=1, end=2)
        shape = w.node("Concat", [self.ints(1, 1), length, self.ints(1)], axis=0)
        self.mask = w.node("Expand", [keep, shape])

    def rms_norm(self, x, weight):
        return self.writer.node("RMSNormalization", [x, self.weight(weight)], axis=-1,
                                epsilon=self.config.rms_norm_eps)

    def attention(self, index, _, q, k, v):
        w, c = self.writer, self.config
        q = self._rope(self._split_heads(q, c.num_attention_heads))
        k = self._rope(self._split_heads(k, c.num_key_value_heads))
        v = self._split_heads(v, c.num_key_value_heads)
        past = [f"past_key_values.{index}.key", f"past_key_values.{index}.value"]
        present = [f"present.{index}.key", f"present.{index}.value"]
        y, _, _ = w.node("Attention", [q, k, v, self.mask, *past],
                         outputs=[f"{w.scope}/Attention_output_0", *present],
                         is_causal=1, scale=c.head_dim ** -0.5)
        y = w.node("Transpose", [y], perm=[0, 2, 1, 3])
        return w.node("Reshape", [y, self.ints(0, 0, c.num_attention_heads * c.head_dim)])

    def _split_heads(self, x, heads):
        """[B, S, heads·D] → [B, heads, S, D]"""
        x = self.writer.node("Reshape", [x, self.ints(0, 0, heads, self.config.head_dim)])
        return self.writer.node("Transpose", [x], perm=[0, 2, 1, 3])

    def _rope(self, x):
        return self.writer.node("RotaryEmbedding", [x, self.cos_table, self.sin_table, "position_ids"],
                                interleaved=0)


class DecomposedSpelling(_Spelling):
    """What tracing the eager modules leaves: primitives and shape arithmetic."""

    constants_as_nodes = True

    def prologue(self):
        """cos and sin [B, S, D], and the mask [B, 1, S, T] that is added."""
        w = self.writer
        w.scope = "/model/rotary_emb"
        self.cos, self.sin = (self._rope_rows(table) for table in (self.cos_table, self.sin_table))

        w.scope = "/model"
        past = self._dim("past_key_values.0.key", 2)
        total = w.node("Add", [past, self._dim("input_ids", 1)])
        queries = w.node("Range", [past, total, self.int_scalar(1)])
        keys = w.node("Range", [self.int_scalar(0), total, self.int_scalar(1)])
        causal = w.node("LessOrEqual", [w.node("Unsqueeze", [keys, self.ints(0)]),
                                        w.node("Unsqueeze", [queries, self.ints(1)])])
        causal = w.node("Unsqueeze", [causal, self.ints(0, 1)])
        padding = w.node("Unsqueeze", [w.node("Cast", ["attention_mask"], to=ONNX_TYPE[np.dtype(np.bool_)]), self.ints(1, 2)])
        keep = w.node("And", [causal, padding])
        lowest = float(ml_dtypes.finfo(self.dtype).min)
        self.mask = w.node("Where", [keep, self.scalar(0), self.scalar(lowest)])

    def rms_norm(self, x, weight):
        w = self.writer
        wide = x if self.dtype == np.float32 else w.node("Cast", [x], to=ONNX_TYPE[np.dtype(np.float32)])
        square = w.node("Pow", [wide, self.scalar(2, np.float32)])
        variance = w.node("ReduceMean", [square, self.ints(-1)], keepdims=1)
        shifted = w.node("Add", [variance, self.scalar(self.config.rms_norm_eps, np.float32)])
        inverse = w.node("Reciprocal", [w.node("Sqrt", [shifted])])
        normed = w.node("Mul", [wide, inverse])
        return w.node("Mul", [self.weight(weight), self._narrow(normed)])

    def attention(self, index, source, q, k, v):
        w, c = self.writer, self.config
        cos = w.node("Unsqueeze", [self.cos, self.ints(1)])
        sin = w.node("Unsqueeze", [self.sin, self.ints(1)])
        batch, length = self._dim(source, 0), self._dim(source, 1)
        q, k, v = (self._split_heads(x, batch, length) for x in (q, k, v))
        q, k = self._rope(q, cos, sin), self._rope(k, cos, sin)
        k = w.node("Concat", [f"past_key_values.{index}.key", k], outputs=[f"present.{index}.key"], axis=2)
        v = w.node("Concat", [f"past_key_values.{index}.value", v], outputs=[f"present.{index}.value"], axis=2)
        k, v = self._repeat_heads(k), self._repeat_heads(v)

        scores = w.node("MatMul", [q, w.node("Transpose", [k], perm=[0, 1, 3, 2])])
        scores = w.node("Mul", [scores, self.scalar(c.head_dim ** -0.5)])
        scores = w.node("Add", [scores, self.mask])
        if self.dtype != np.float32:
            scores = w.node("Cast", [scores], to=ONNX_TYPE[np.dtype(np.float32)])
        y = w.node("MatMul", [self._narrow(w.node("Softmax", [scores], axis=-1)), v])
        y = w.node("Transpose", [y], perm=[0, 2, 1, 3])
        return w.node("Reshape", [y, self._shape(batch, length, -1)])

    def _rope_rows(self, table):
        """The table's rows at the positions, twice side by side: [B, S, D]."""
        rows = self.writer.node("Gather", [table, "position_ids"])
        return self.writer.node("Concat", [rows, rows], axis=-1)

    def _split_heads(self, x, batch, length):
        x = self.writer.node("Reshape", [x, self._shape(batch, length, -1, self.config.head_dim)])
        return self.writer.node("Transpose", [x], perm=[0, 2, 1, 3])

    def _rope(self, x, cos, sin):
        """x·cos + rotate_half(x)·sin"""
        w, half = self.writer, self.config.head_dim // 2
        low = w.node("Slice", [x, self.ints(0), self.ints(half), self.ints(3), self.ints(1)])
        high = w.node("Slice", [x, self.ints(half), self.ints(np.iinfo(np.int64).max), self.ints(3), self.ints(1)])
        rotated = w.node("Concat", [w.node("Neg", [high]), low], axis=-1)
        return w.node("Add", [w.node("Mul", [x, cos]), w.node("Mul", [rotated, sin])])

    def _repeat_heads(self, x):
        """[B, K, T, D] → [B, H, T, D], each head repeated for its queries."""
        w, c = self.writer, self.config
        repeats = c.num_attention_heads // c.num_key_value_heads
        if repeats == 1:
            return x
        batch, heads, total, size = (self._dim(x, axis) for axis in range(4))
        x = w.node("Unsqueeze", [x, self.ints(2)])
        x = w.node("Expand", [x, self._shape(batch, heads, repeats, total, size)])
        heads = w.node("Mul", [heads, self.int_scalar(repeats)])
        return w.node("Reshape", [x, self._shape(batch, heads, total, size)])

    def _narrow(self, x):
        """Back from float32 to the type of the model."""
        if self.dtype == np.float32:
            return x
        return self.writer.node("Cast", [x], to=ONNX_TYPE[self.dtype])

    def _dim(self, x, axis):
        """One dimension of x as a scalar."""
        return self.writer.node("Gather", [self.writer.node("Shape", [x]), self.int_scalar(axis)], axis=0)

    def _shape(self, *dims):
        """A shape from scalars (values' names) and known sizes."""
        w = self.writer
        parts = [w.node("Unsqueeze", [d, self.ints(0)]) if isinstance(d, str) else self.ints(d) for d in dims]
        return w.node("Concat", parts, axis=0)


def write_json(path, value):
    Path(path).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
