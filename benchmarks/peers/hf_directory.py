#!/usr/bin/env python3
"""Writes a Llama GGUF file as a Hugging Face directory: what other builders read.

    hf_directory.py GGUF OUTDIR

Weights in float32 in OUTDIR/model.safetensors, beside them config.json and the
tokenizer's files.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
from export_gguf import GgufTokenizer, LlamaGguf, write_json, write_tokenizer  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Writes a Llama GGUF file as a Hugging Face directory.")
    parser.add_argument("gguf", type=Path)
    parser.add_argument("outdir", type=Path)
    args = parser.parse_args()
    model = LlamaGguf(args.gguf)
    tokenizer = GgufTokenizer(model.metadata)
    args.outdir.mkdir(parents=True, exist_ok=True)
    write_tokenizer(args.outdir, tokenizer, model.config.max_position_embeddings)
    ids = {"bos_token_id": tokenizer.bos_id, "eos_token_id": tokenizer.eos_id}
    write_json(args.outdir / "config.json", model.config.to_json(np.float32, **ids))
    write_json(args.outdir / "generation_config.json", ids)
    weights = {name: np.ascontiguousarray(model.weight(name)) for name in model.config.weight_shapes()}
    save_file(weights, args.outdir / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
