#!/usr/bin/env python3
"""A tiny Llama with random weights, for tests that need no downloaded model.

    tiny_llama.py OUTDIR [--seed 0 --layers 2 --hidden 64 …] [--decomposed]

Same seed and sizes, same bytes. The graph is that of the real exporters
(llama_graph.py). The tokenizer is left out: a test passes token ids.
"""

import argparse
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np

from llama_graph import LlamaConfig, export_decoder, write_json

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def random_weights(config, seed, embedding=0.5, residual=0.5):
    """Weights drawn per name, so that one does not depend on the others' sizes.

    Linears have variance 1/fan-in, which keeps the activations near one. q and k
    are larger, so that attention picks among the tokens and does not average
    them away. The deviation `embedding` and the factor `residual` on what layers
    add set how much the logits depend on the context, and with it how far a
    rounding error spreads.
    """
    shapes = config.weight_shapes()
    gains = {"q_proj": 1.5, "k_proj": 1.5, "o_proj": residual, "down_proj": residual}

    def scale(name):
        module = name.split(".")[-2]
        return embedding if module == "embed_tokens" else gains.get(module, 1) * shapes[name][1] ** -0.5

    def weight(name):
        generator = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
        sample = generator.standard_normal(shapes[name], dtype=np.float32)
        if len(sample.shape) == 1:
            return 1 + np.float32(0.1) * sample
        return sample * np.float32(scale(name))

    return weight


def main():
    parser = argparse.ArgumentParser(description="Writes a tiny random Llama to OUTDIR/model.onnx.")
    parser.add_argument("outdir", type=Path, metavar="OUTDIR")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--intermediate", type=int, help="default: 8/3 of --hidden, rounded up to 4")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--head-dim", type=int, help="default: --hidden / --heads")
    parser.add_argument("--vocab", type=int, default=256)
    parser.add_argument("--max-positions", type=int, default=512)
    parser.add_argument("--rope-theta", type=float, default=10000.0)
    parser.add_argument("--untied", action="store_true", help="a separate lm_head weight")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--decomposed", action="store_true", help="the spelling of torch.onnx")
    parser.add_argument("--inline", action="store_true", help="weights inside model.onnx")
    args = parser.parse_args()

    if args.seed < 0:
        parser.error("--seed must not be negative")
    if args.heads <= 0 or args.kv_heads <= 0:
        parser.error("--heads and --kv-heads must be positive")
    if args.head_dim is None and args.hidden % args.heads:
        parser.error("--hidden must be a multiple of --heads, unless --head-dim is given")
    try:
        config = LlamaConfig(
            vocab_size=args.vocab,
            hidden_size=args.hidden,
            intermediate_size=args.intermediate or -(-args.hidden * 8 // 12) * 4,
            num_hidden_layers=args.layers,
            num_attention_heads=args.heads,
            num_key_value_heads=args.kv_heads,
            head_dim=args.head_dim or args.hidden // args.heads,
            rms_norm_eps=1e-5,
            rope_theta=args.rope_theta,
            max_position_embeddings=args.max_positions,
            tie_word_embeddings=not args.untied,
        )
    except ValueError as error:
        parser.error(str(error))
    export_decoder(args.outdir, config, random_weights(config, args.seed), DTYPES[args.dtype], args.decomposed,
                   args.inline, metadata={"seed": str(args.seed)})
    write_json(args.outdir / "config.json", config.to_json(DTYPES[args.dtype]))


if __name__ == "__main__":
    main()
