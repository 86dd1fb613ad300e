"""An independent Llama forward pass in numpy, and helpers of the tests here.

Nothing below shares code with the exporters' graph: one sequence, no cache,
double precision, rotary pairs as complex numbers.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(MODELS))


def forward(config, weight, tokens, interleaved=False, prepare=lambda x: x):
    """Logits [tokens, vocabulary]; `weight(name)` as export_decoder takes it.

    `interleaved` says that q and k have their rotary pairs at (2i, 2i+1).
    `prepare` is applied to what goes into each linear.
    """
    w = lambda name: weight(name).astype(np.float64)
    linear = lambda x, name: prepare(x) @ w(f"{name}.weight").T
    heads, kv_heads, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    count = len(tokens)
    turn = np.exp(1j * np.arange(count)[:, None] * config.rope_theta ** (-np.arange(size // 2) / (size // 2)))

    def norm(x, name):
        return w(name) * x / np.sqrt((x * x).mean(-1, keepdims=True) + config.rms_norm_eps)

    def rotate(x):  # [tokens, heads, size]
        real, imaginary = (x[..., ::2], x[..., 1::2]) if interleaved else np.split(x, 2, -1)
        z = (real + 1j * imaginary) * turn[:, None]
        return np.concatenate([z.real, z.imag], -1)

    x = w("model.embed_tokens.weight")[tokens]
    future = np.triu(np.ones((count, count), bool), 1)
    for i in range(config.num_hidden_layers):
        layer = f"model.layers.{i}"
        n = norm(x, f"{layer}.input_layernorm.weight")
        q = rotate(linear(n, f"{layer}.self_attn.q_proj").reshape(count, heads, size))
        k = rotate(linear(n, f"{layer}.self_attn.k_proj").reshape(count, kv_heads, size))
        v = linear(n, f"{layer}.self_attn.v_proj").reshape(count, kv_heads, size)
        y = np.empty((count, heads, size))
        for head in range(heads):
            shared = head * kv_heads // heads
            scores = q[:, head] @ k[:, shared].T / np.sqrt(size)
            scores[future] = -np.inf
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            y[:, head] = scores / scores.sum(-1, keepdims=True) @ v[:, shared]
        x = x + linear(y.reshape(count, -1), f"{layer}.self_attn.o_proj")
        n = norm(x, f"{layer}.post_attention_layernorm.weight")
        gate = linear(n, f"{layer}.mlp.gate_proj")
        up = linear(n, f"{layer}.mlp.up_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * up, f"{layer}.mlp.down_proj")
    x = norm(x, "model.norm.weight")
    return linear(x, "model.embed_tokens" if config.tie_word_embeddings else "lm_head")


def run_script(name, *arguments):
    """Runs a script of models/; the finished process with its output as text."""
    return subprocess.run([sys.executable, str(MODELS / name), *map(str, arguments)], capture_output=True, text=True)
