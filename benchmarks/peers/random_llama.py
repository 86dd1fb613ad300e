#!/usr/bin/env python3
"""Writes a GGUF file of TinyLlama-1.1B's shape with seeded random weights.

    random_llama.py OUT.gguf [--layers 22]

The speed of an engine does not depend on what the weights are; the shape is that
of TinyLlama-1.1B: 22 layers of 2048, 32 heads, 4 of them for keys and values, an
inner width of 5632, 32000 tokens. Weights are stored in f16, the vocabulary is
made up.
"""

import argparse
import itertools
import string

import gguf
import numpy as np

HIDDEN, INNER, HEADS, KV_HEADS, VOCABULARY, CONTEXT = 2048, 5632, 32, 4, 32000, 2048
HEAD = HIDDEN // HEADS


SPECIAL = ["<unk>", "<s>", "</s>"]


def vocabulary():
    """A byte-level BPE, which every engine reads: the bytes, then pairs of letters, then pairs of those."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    # A byte that is not printable stands as the next character from U+0100 on (Radford et al., 2019).
    others = (chr(0x100 + i) for i in range(256))
    tokens = SPECIAL + [chr(byte) if byte in printable else next(others) for byte in range(256)]
    pairs = [a + b for a in string.ascii_lowercase for b in string.ascii_lowercase]
    merges = [(pair[0], pair[1]) for pair in pairs] + list(itertools.product(pairs, pairs))
    merges = merges[:VOCABULARY - len(tokens)]
    return tokens + [a + b for a, b in merges], [f"{a} {b}" for a, b in merges]


def main():
    parser = argparse.ArgumentParser(description="Writes a random model of TinyLlama-1.1B's shape.")
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=22)
    args = parser.parse_args()
    draw = np.random.default_rng(0)
    writer = gguf.GGUFWriter(args.out, "llama")
    writer.add_name("random-tinyllama-1.1b")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(args.layers)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)

    tokens, merges = vocabulary()
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.CONTROL if token in SPECIAL else kinds.NORMAL for token in tokens])
    writer.add_token_merges(merges)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)

    def matrix(name, rows, columns):
        weights = draw.standard_normal((rows, columns), dtype=np.float32) / np.float32(columns) ** 0.5
        writer.add_tensor(name, weights.astype(np.float16))

    def ones(name):
        writer.add_tensor(name, np.ones(HIDDEN, np.float32))

    matrix("token_embd.weight", VOCABULARY, HIDDEN)
    for layer in range(args.layers):
        name = f"blk.{layer}."
        ones(name + "attn_norm.weight")
        matrix(name + "attn_q.weight", HIDDEN, HIDDEN)
        matrix(name + "attn_k.weight", KV_HEADS * HEAD, HIDDEN)
        matrix(name + "attn_v.weight", KV_HEADS * HEAD, HIDDEN)
        matrix(name + "attn_output.weight", HIDDEN, HIDDEN)
        ones(name + "ffn_norm.weight")
        matrix(name + "ffn_gate.weight", INNER, HIDDEN)
        matrix(name + "ffn_up.weight", INNER, HIDDEN)
        matrix(name + "ffn_down.weight", HIDDEN, INNER)
    ones("output_norm.weight")
    matrix("output.weight", VOCABULARY, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
