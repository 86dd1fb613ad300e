# RUN: %python %s
"""The fixtures of the GenAI builder: their logits against numpy, which reads the
quantized weights by itself, and against the onnxruntime of today; their ids
against SentencePiece."""

import json
import unittest

import numpy as np
import onnx
import sentencepiece
import tokenizers

from llama_oracle import MODELS, ROOT, forward

from llama_graph import LlamaConfig
from ort_reference import Decoder, read_tokens
from tiny_llama import random_weights

FIXTURES = ROOT / "test" / "fixtures"
VARIANTS = ["genai-int4", "genai-int4-acc4", "genai-int4-asym", "genai-fp32"]
CONFIG = LlamaConfig(vocab_size=480, hidden_size=64, intermediate_size=172, num_hidden_layers=2,
                     num_attention_heads=4, num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-5,
                     rope_theta=10000.0, max_position_embeddings=1024, tie_word_embeddings=False)


def nibbles(packed):
    """uint8 [..., n] → [..., 2n], the low nibble first."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)


class GenaiWeights:
    """Weights of a builder's file by Hugging Face names, dequantized."""

    def __init__(self, path):
        self.model = onnx.load(path)
        self.tensors = {t.name: onnx.numpy_helper.to_array(t) for t in self.model.graph.initializer}
        self.nodes = {node.output[0].removesuffix("/output_0"): node for node in self.model.graph.node}
        self.nodes["/lm_head/MatMul"] = self.nodes.pop("logits")

    def __call__(self, name):
        name = name.replace("self_attn", "attn").replace("model.norm", "model.layers.2.final_norm_layernorm")
        part = name.split(".")[-2]
        if "norm" in part or "embed" in part:
            return self.tensors[name]
        module = "/" + name.removesuffix(".weight").replace(".", "/").replace("layers/", "layers.") + "/MatMul"
        if module in self.nodes:
            return self.matrix(self.nodes[module])
        fused = self.matrix(self.nodes[module.replace(part, "qkv_proj")])
        return dict(zip(("q_proj", "k_proj", "v_proj"), np.split(fused, [64, 96])))[part]

    def matrix(self, node):
        if node.op_type == "MatMul":
            return self.tensors[node.input[1]].T
        attributes = {a.name: a.i for a in node.attribute}
        n, k, block = attributes["N"], attributes["K"], attributes["block_size"]
        blocks = -(-k // block)
        values = nibbles(self.tensors[node.input[1]]).reshape(n, blocks, block).astype(np.float64)
        zeros = np.full((n, blocks), 8)
        if len(node.input) > 3 and node.input[3]:
            zeros = nibbles(self.tensors[node.input[3]].reshape(n, -1))[:, :blocks]
        scales = self.tensors[node.input[2]].reshape(n, blocks)
        return ((values - zeros[..., None]) * scales[..., None]).reshape(n, -1)[:, :k]


def quantize_activations(x, block=32):
    """What accuracy_level 4 does: int8 with one scale per token and block."""
    rows, k = x.shape
    padded = np.pad(x, ((0, 0), (0, -k % block))).reshape(rows, -1, block)
    scale = np.abs(padded).max(-1, keepdims=True) / 127
    return (np.round(padded / np.where(scale == 0, 1, scale)) * scale).reshape(rows, -1)[:, :k]


class GenaiFixtures(unittest.TestCase):
    def assert_close(self, ours, reference, tolerance):
        difference = np.abs(ours - reference).max(-1) / np.abs(reference).max(-1)
        self.assertLess(difference.max(), tolerance)

    def test_logits_equal_numpy(self):
        for variant in VARIANTS:
            with self.subTest(variant):
                directory = FIXTURES / variant
                (tokens,) = read_tokens(directory / "tokens.txt")
                level_4 = variant == "genai-int4-acc4"
                prepare = quantize_activations if level_4 else lambda x: x
                logits = forward(CONFIG, GenaiWeights(directory / "model.onnx"), tokens, prepare=prepare)
                self.assert_close(np.load(directory / "logits.npy"), logits, 1e-2 if level_4 else 1e-5)

    def test_float_weights_are_the_seeded_ones(self):
        weights, seeded = GenaiWeights(FIXTURES / "genai-fp32" / "model.onnx"), random_weights(CONFIG, seed=20, embedding=2.0, residual=0.25)
        for name in CONFIG.weight_shapes():
            np.testing.assert_array_equal(weights(name), seeded(name), name)

    def test_onnxruntime_still_agrees(self):
        for variant in VARIANTS:
            with self.subTest(variant):
                directory = FIXTURES / variant
                (tokens,) = read_tokens(directory / "tokens.txt")
                (greedy,) = read_tokens(directory / "greedy.txt")
                decoder = Decoder(directory)
                tolerance = 1e-2 if variant == "genai-int4-acc4" else 1e-5
                self.assert_close(decoder.logits(tokens), np.load(directory / "logits.npy"), tolerance)
                if variant != "genai-int4-acc4":
                    self.assertEqual(decoder.greedy(tokens, len(greedy)), greedy)

    def test_tokenizer_equals_sentencepiece(self):
        text = (MODELS / "fixtures" / "text.txt").read_text(encoding="utf-8")
        cases = [text, *text.splitlines(), "", " ", "  two  spaces ", "tab\tand\r\nline", "🦙 ½ 10²", "▁"]
        for variant in VARIANTS:
            directory = FIXTURES / variant
            ours = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
            theirs = sentencepiece.SentencePieceProcessor(model_file=str(directory / "tokenizer.model"))
            for case in cases:
                with self.subTest(variant, case=case):
                    ids = theirs.encode(case)
                    self.assertEqual(ours.encode(case).ids, [theirs.bos_id(), *ids])
                    self.assertEqual(ours.decode(ids), theirs.decode(ids))
            (tokens,) = read_tokens(directory / "tokens.txt")
            self.assertEqual(tokens, ours.encode(text).ids[:len(tokens)])

    def test_operators_and_levels(self):
        for variant in VARIANTS:
            model = onnx.load(FIXTURES / variant / "model.onnx", load_external_data=False)
            matmuls = [n for n in model.graph.node if n.op_type == "MatMulNBits"]
            levels = {a.i for n in matmuls for a in n.attribute if a.name == "accuracy_level"}
            attention = [n for n in model.graph.node if n.op_type == "GroupQueryAttention"]
            self.assertEqual(len(attention), 2)
            self.assertEqual([not n.input[1] for n in attention], [variant != "genai-int4-asym"] * 2)
            self.assertEqual(len(matmuls), {"genai-fp32": 0, "genai-int4-asym": 15}.get(variant, 11))
            self.assertEqual(levels, {4} if variant == "genai-int4-acc4" else set())
            self.assertEqual({len(n.input) for n in matmuls} - {3}, {4} if variant == "genai-int4-asym" else set())
            config = json.loads((FIXTURES / variant / "genai_config.json").read_text())
            self.assertEqual(config["model"]["decoder"]["filename"], "model.onnx")


if __name__ == "__main__":
    unittest.main()
