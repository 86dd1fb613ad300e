#!/usr/bin/env python3
"""Exports a Llama-architecture GGUF file as an ONNX decoder.

    export_gguf.py GGUF OUTDIR [--decomposed]

Writes OUTDIR/model.onnx with the weights dequantized to float32 in
model.onnx.data, and beside it tokenizer.json, tokenizer_config.json (with the
chat template), special_tokens_map.json, config.json and generation_config.json.
Tensors are dequantized one at a time.

GGUF stores the q and k projections of this architecture with their rows in
rotary pairs (2i, 2i+1); they are put back into the order of Hugging Face.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize

from gguf_tokenizer import GgufTokenizer, UnsupportedTokenizer
from llama_graph import LlamaConfig, export_decoder, rows_to_half_split, write_json

GLOBAL_TENSORS = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
LAYER_TENSORS = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
FREQUENCY_FACTORS = "rope_freqs.weight"


class UnsupportedModel(Exception):
    """The GGUF file holds a model that this exporter cannot express."""


class LlamaGguf:
    """A GGUF file of architecture "llama", its tensors by Hugging Face names."""

    def __init__(self, path):
        self._path = path
        self._reader = _open(path)
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        architecture = self.metadata("general.architecture")
        if architecture != "llama":
            raise UnsupportedModel(f"the architecture is '{architecture}'; only 'llama' is supported")
        self.config = self._read_config()
        self._check_tensors()

    def metadata(self, key):
        field = self._reader.fields.get(key)
        return None if field is None else field.contents()

    def weight(self, name):
        """The weight in float32 and in the order of Hugging Face."""
        tensor = self._tensors[_gguf_name(name)]
        try:
            weight = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        except NotImplementedError:
            raise UnsupportedModel(f"{tensor.name} is of type {tensor.tensor_type.name}, "
                                   "which the gguf package does not dequantize") from None
        if name.endswith("q_proj.weight"):
            return rows_to_half_split(weight, self.config.num_attention_heads)
        if name.endswith("k_proj.weight"):
            return rows_to_half_split(weight, self.config.num_key_value_heads)
        return weight

    def frequency_factors(self):
        tensor = self._tensors.get(FREQUENCY_FACTORS)
        return None if tensor is None else dequantize(tensor.data, tensor.tensor_type)

    def _hyperparameter(self, name, default=None):
        value = self.metadata(f"llama.{name}")
        if value is None:
            value = default
        if value is None:
            raise UnsupportedModel(f"the key llama.{name} is missing")
        if isinstance(value, list):
            raise UnsupportedModel(f"llama.{name} differs from layer to layer")
        return value

    def _read_config(self):
        if self._hyperparameter("expert_count", 0):
            raise UnsupportedModel("it is a mixture of experts (llama.expert_count)")
        scaling = self._hyperparameter("rope.scaling.type", "none")
        if scaling != "none":
            raise UnsupportedModel(f"llama.rope.scaling.type is '{scaling}'; only 'none' is supported")
        embedding = self._tensors.get("token_embd.weight")
        if embedding is None:
            raise UnsupportedModel("the tensor token_embd.weight is missing")
        heads = self._hyperparameter("attention.head_count")
        hidden = self._hyperparameter("embedding_length")
        head_dim = self._hyperparameter("attention.key_length", hidden // max(heads, 1))
        for key in ("attention.value_length", "rope.dimension_count"):
            if self._hyperparameter(key, head_dim) != head_dim:
                raise UnsupportedModel(f"llama.{key} is {self._hyperparameter(key)}, not the key's {head_dim}")
        return LlamaConfig(
            # GGUF's shapes are innermost first.
            vocab_size=int(embedding.shape[1]),
            hidden_size=hidden,
            intermediate_size=self._hyperparameter("feed_forward_length"),
            num_hidden_layers=self._hyperparameter("block_count"),
            num_attention_heads=heads,
            num_key_value_heads=self._hyperparameter("attention.head_count_kv", heads),
            head_dim=head_dim,
            # Both are stored as float32; the shortest decimal that rounds to
            # them is what was meant.
            rms_norm_eps=_shortest(self._hyperparameter("attention.layer_norm_rms_epsilon")),
            rope_theta=_shortest(self._hyperparameter("rope.freq_base", 10000.0)),
            max_position_embeddings=self._hyperparameter("context_length"),
            tie_word_embeddings="output.weight" not in self._tensors,
        )

    def _check_tensors(self):
        """Every tensor is there, of the right shape, and none is left over."""
        layers = self.config.num_hidden_layers
        if layers * len(LAYER_TENSORS) > len(self._tensors):
            raise UnsupportedModel(f"{len(self._tensors)} tensors are too few for {layers} layers")
        shapes = {_gguf_name(name): shape for name, shape in self.config.weight_shapes().items()}
        if FREQUENCY_FACTORS in self._tensors:
            shapes[FREQUENCY_FACTORS] = (self.config.head_dim // 2,)
        missing = sorted(shapes.keys() - self._tensors.keys())
        unknown = sorted(self._tensors.keys() - shapes.keys())
        if missing:
            raise UnsupportedModel(f"{len(missing)} tensors are missing, the first is {missing[0]}")
        if unknown:
            raise UnsupportedModel(f"{len(unknown)} tensors have no place in this architecture, "
                                   f"the first is {unknown[0]}")
        for name, shape in shapes.items():
            actual = tuple(int(size) for size in reversed(self._tensors[name].shape))
            if actual != shape:
                raise UnsupportedModel(f"{name} has shape {list(actual)}, expected {list(shape)}")


def _open(path):
    try:
        return GGUFReader(path)
    except OSError:
        raise
    except Exception as error:  # what a damaged file makes of the reader's indexing
        raise UnsupportedModel(f"not a whole GGUF file ({type(error).__name__}: {error})") from None


def _gguf_name(name):
    layer = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name)
    return f"blk.{layer[1]}.{LAYER_TENSORS[layer[2]]}" if layer else GLOBAL_TENSORS[name]


def _shortest(value):
    return float(str(np.float32(value)))


def write_tokenizer(outdir, tokenizer, context_length):
    write_json(outdir / "tokenizer.json", tokenizer.tokenizer_json())
    write_json(outdir / "tokenizer_config.json", tokenizer.tokenizer_config(context_length))
    write_json(outdir / "special_tokens_map.json", tokenizer.special_tokens())


def main():
    parser = argparse.ArgumentParser(description="Exports a Llama GGUF file to OUTDIR/model.onnx.")
    parser.add_argument("gguf", type=Path, metavar="GGUF")
    parser.add_argument("outdir", type=Path, metavar="OUTDIR")
    parser.add_argument("--decomposed", action="store_true", help="the spelling of torch.onnx")
    args = parser.parse_args()

    try:
        model = LlamaGguf(args.gguf)
        tokenizer = GgufTokenizer(model.metadata)
        if len(tokenizer.tokens) != model.config.vocab_size:
            raise UnsupportedModel(f"{len(tokenizer.tokens)} tokens, but {model.config.vocab_size} embeddings")
        args.outdir.mkdir(parents=True, exist_ok=True)
        write_tokenizer(args.outdir, tokenizer, model.config.max_position_embeddings)
        metadata = {"source": args.gguf.name}
        for key in ("name", "license"):
            if model.metadata(f"general.{key}"):
                metadata[key] = model.metadata(f"general.{key}")
        export_decoder(args.outdir, model.config, model.weight, decomposed=args.decomposed,
                       frequency_factors=model.frequency_factors(), metadata=metadata)
        ids = {"bos_token_id": tokenizer.bos_id, "eos_token_id": tokenizer.eos_id,
               "pad_token_id": tokenizer.padding_id}
        write_json(args.outdir / "config.json", model.config.to_json(np.float32, **ids))
        write_json(args.outdir / "generation_config.json", ids | {"eos_token_id": tokenizer.stop_ids()})
    except (UnsupportedModel, UnsupportedTokenizer, ValueError, OSError) as error:
        sys.exit(f"export_gguf.py: error: {args.gguf}: {error}")


if __name__ == "__main__":
    main()
