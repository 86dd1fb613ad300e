#!/usr/bin/env python3
"""Exports a llama2.c checkpoint (version 0) as an ONNX decoder.

    export_llama2c.py BIN TOK OUTDIR [--decomposed]

Writes OUTDIR/model.onnx, its weights, config.json, generation_config.json and
the tokenizer, which keeps llama2.c's own format (tokenizer.bin).

The checkpoint is seven little-endian int32 (dim, hidden_dim, n_layers, n_heads,
n_kv_heads, vocab_size, seq_len; a negative vocab_size says that the classifier
is a weight of its own) and then the float32 weights in the order of
`checkpoint_layout`. The tokenizer is an int32, the longest token's length, and
per token a float32 score, an int32 length and the bytes.
"""

import argparse
import shutil
import struct
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from llama_graph import LlamaConfig, export_decoder, rows_to_half_split, write_json

HEADER = struct.Struct("<7i")
BOS, EOS = 1, 2


class FormatError(Exception):
    """The file is not what it should be."""


def read_config(header, path):
    dim, hidden, layers, heads, kv_heads, vocab, positions = HEADER.unpack(header)
    if heads <= 0 or dim % heads:
        raise FormatError(f"{path}: not a llama2.c checkpoint: {heads} heads of a width of {dim}")
    try:
        return LlamaConfig(
            vocab_size=abs(vocab),
            hidden_size=dim,
            intermediate_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=dim // heads,
            rms_norm_eps=1e-5,
            rope_theta=10000.0,
            max_position_embeddings=positions,
            tie_word_embeddings=vocab > 0,
        )
    except ValueError as error:
        raise FormatError(f"{path}: not a llama2.c checkpoint: {error}") from None


def checkpoint_layout(config):
    """Name and shape of each part of the file; per-layer parts are stacked."""
    # One layer stands for all: their number is still only a claim of the file.
    shapes = replace(config, num_hidden_layers=1).weight_shapes()

    def stacked(suffix):
        return f"model.layers.{{}}.{suffix}", (config.num_hidden_layers, *shapes[f"model.layers.0.{suffix}"])

    layout = [
        ("model.embed_tokens.weight", shapes["model.embed_tokens.weight"]),
        stacked("input_layernorm.weight"),
        stacked("self_attn.q_proj.weight"),
        stacked("self_attn.k_proj.weight"),
        stacked("self_attn.v_proj.weight"),
        stacked("self_attn.o_proj.weight"),
        stacked("post_attention_layernorm.weight"),
        stacked("mlp.gate_proj.weight"),
        stacked("mlp.down_proj.weight"),
        stacked("mlp.up_proj.weight"),
        ("model.norm.weight", shapes["model.norm.weight"]),
        # Rotary cosines and sines, which readers compute themselves.
        (None, (2, config.max_position_embeddings, config.head_dim // 2)),
    ]
    if not config.tie_word_embeddings:
        layout.append(("lm_head.weight", shapes["lm_head.weight"]))
    return layout


def open_weights(path, config):
    """A function from a weight's name to its array, mapped from the file."""
    layout = checkpoint_layout(config)
    expected = HEADER.size + 4 * sum(int(np.prod(shape, dtype=object)) for _, shape in layout)
    actual = path.stat().st_size
    if actual != expected:
        raise FormatError(f"{path}: {actual} bytes, but its header describes {expected}")
    data = np.memmap(path, "<f4", mode="r", offset=HEADER.size)
    arrays, position = {}, 0
    for name, shape in layout:
        size = int(np.prod(shape))
        part = data[position:position + size].reshape(shape)
        position += size
        if name is None:
            continue
        if "{}" in name:
            arrays |= {name.format(i): part[i] for i in range(config.num_hidden_layers)}
        else:
            arrays[name] = part

    def weight(name):
        if name.endswith(".q_proj.weight"):
            return rows_to_half_split(arrays[name], config.num_attention_heads)
        if name.endswith(".k_proj.weight"):
            return rows_to_half_split(arrays[name], config.num_key_value_heads)
        return arrays[name]

    return weight


def check_tokenizer(path, vocab_size):
    data = path.read_bytes()
    position, count = 4, 0
    while position + 8 <= len(data):
        (length,) = struct.unpack_from("<i", data, position + 4)
        if length < 0 or position + 8 + length > len(data):
            break
        position += 8 + length
        count += 1
    if position != len(data) or count != vocab_size:
        raise FormatError(f"{path}: {count} whole tokens in {len(data)} bytes, expected {vocab_size} and no rest")


def main():
    parser = argparse.ArgumentParser(description="Exports a llama2.c checkpoint to OUTDIR/model.onnx.")
    parser.add_argument("checkpoint", type=Path, metavar="BIN")
    parser.add_argument("tokenizer", type=Path, metavar="TOK")
    parser.add_argument("outdir", type=Path, metavar="OUTDIR")
    parser.add_argument("--decomposed", action="store_true", help="the spelling of torch.onnx")
    args = parser.parse_args()

    try:
        with open(args.checkpoint, "rb") as file:
            header = file.read(HEADER.size)
        if len(header) < HEADER.size:
            raise FormatError(f"{args.checkpoint}: not a llama2.c checkpoint: shorter than its header")
        config = read_config(header, args.checkpoint)
        weights = open_weights(args.checkpoint, config)
        check_tokenizer(args.tokenizer, config.vocab_size)
        export_decoder(args.outdir, config, weights, decomposed=args.decomposed,
                       metadata={"source": args.checkpoint.name})
        shutil.copyfile(args.tokenizer, args.outdir / "tokenizer.bin")
        # llama2.c separates stories by BOS and stops there; EOS was never seen
        # in training.
        ids = {"bos_token_id": BOS, "eos_token_id": [BOS, EOS]}
        write_json(args.outdir / "config.json", config.to_json(np.float32, **ids))
        write_json(args.outdir / "generation_config.json", ids)
        write_json(args.outdir / "tokenizer_config.json",
                   {"add_bos_token": True, "add_eos_token": False, "bos_token": "<s>", "eos_token": "</s>"})
    except (FormatError, OSError) as error:
        sys.exit(f"export_llama2c.py: error: {error}")


if __name__ == "__main__":
    main()
