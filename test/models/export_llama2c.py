# RUN: %python %s
"""export_llama2c.py: written checkpoints against numpy, stories260K against its
golden tokens, damaged files against their diagnostics."""

import json
import math
import re
import struct
import tempfile
import unittest
from pathlib import Path

import numpy as np

from llama_oracle import DATA, forward, run_script

from llama_graph import LlamaConfig
from ort_reference import Decoder, perplexity, read_tokens
from tiny_llama import random_weights

LAYER_PARTS = [
    "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "post_attention_layernorm", "mlp.gate_proj", "mlp.down_proj", "mlp.up_proj"]


def config(tied=True):
    return LlamaConfig(vocab_size=40, hidden_size=24, intermediate_size=20, num_hidden_layers=3,
                       num_attention_heads=4, num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-5,
                       rope_theta=10000.0, max_position_embeddings=32, tie_word_embeddings=tied)


def checkpoint(config, weight):
    """The bytes of a version 0 checkpoint, as llama2.c's exporter lays it out."""
    vocab = config.vocab_size if config.tie_word_embeddings else -config.vocab_size
    header = struct.pack("<7i", config.hidden_size, config.intermediate_size, config.num_hidden_layers,
                         config.num_attention_heads, config.num_key_value_heads, vocab,
                         config.max_position_embeddings)
    arrays = [weight("model.embed_tokens.weight")]
    for part in LAYER_PARTS:
        arrays += [weight(f"model.layers.{i}.{part}.weight") for i in range(config.num_hidden_layers)]
    arrays.append(weight("model.norm.weight"))
    arrays.append(np.full(config.max_position_embeddings * config.head_dim, np.nan, np.float32))
    if not config.tie_word_embeddings:
        arrays.append(weight("lm_head.weight"))
    return header + b"".join(array.astype("<f4").tobytes() for array in arrays)


def vocabulary(count):
    return struct.pack("<i", 3) + b"".join(struct.pack("<fi", -i, 3) + b"%03d" % i for i in range(count))


class ExportLlama2c(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.out = self.directory / "out"
        self.tokens = np.random.default_rng(2).integers(0, 40, 21).tolist()

    def export(self, model, tokenizer, *options):
        paths = self.directory / "model.bin", self.directory / "tok.bin"
        for path, data in zip(paths, (model, tokenizer)):
            path.write_bytes(data)
        return run_script("export_llama2c.py", *paths, self.out, *options)

    def test_logits_equal_numpy(self):
        for tied in (True, False):
            weight = random_weights(config(tied), 5)
            reference = forward(config(tied), weight, self.tokens, interleaved=True)
            for options in ([], ["--decomposed"]):
                with self.subTest(tied=tied, options=options):
                    result = self.export(checkpoint(config(tied), weight), vocabulary(40), *options)
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    logits = Decoder(self.out).logits(self.tokens)
                    self.assertLess(np.abs(logits - reference).max(), 1e-5 * np.abs(reference).max())
        self.assertEqual((self.out / "tokenizer.bin").read_bytes(), vocabulary(40))
        written = json.loads((self.out / "config.json").read_text())
        self.assertEqual(LlamaConfig(**{k: v for k, v in written.items() if k in vars(config())}), config(False))
        self.assertEqual(json.loads((self.out / "generation_config.json").read_text())["eos_token_id"], [1, 2])

    def test_damaged_files_are_diagnosed(self):
        model, tokenizer = checkpoint(config(), random_weights(config(), 5)), vocabulary(40)
        cases = [
            (model[:20], tokenizer, "shorter than its header"),
            (model[:-4], tokenizer, f"{len(model) - 4} bytes, but its header describes {len(model)}"),
            (model + b"\0", tokenizer, f"{len(model) + 1} bytes, but its header describes {len(model)}"),
            (b"\xff" * 4096, tokenizer, "not a llama2.c checkpoint"),
            (struct.pack("<7i", 2**30, 2**30, 2**30, 2**20, 2**20, 2**30, 2**30), tokenizer, "its header describes"),
            (model, vocabulary(39), "39 whole tokens"),
            (model, tokenizer[:-1], "39 whole tokens"),
            (model, tokenizer[:8] + struct.pack("<i", -5) + tokenizer[12:], "0 whole tokens"),
        ]
        for damaged_model, damaged_tokenizer, message in cases:
            with self.subTest(message):
                result = self.export(damaged_model, damaged_tokenizer)
                self.assertEqual(result.returncode, 1)
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertFalse(self.out.exists())


@unittest.skipUnless((DATA / "stories260K").is_dir(), "no ../shared")
class Stories260K(unittest.TestCase):
    def test_golden(self):
        golden = DATA / "golden"
        expected = [int(t) for t in (golden / "stories260K_greedy64.txt").read_text().splitlines()[0].split()]
        scores = [float(s) for s in re.findall(r"mean NLL ([0-9.]+)",
                                               (golden / "stories260K_tinystories_nll.txt").read_text())]
        stories = read_tokens(golden / "tinystories_sample.tok512.txt")
        self.assertEqual((len(expected), len(scores), len(stories)), (64, 6, 5))
        for options in ([], ["--decomposed"]):
            with self.subTest(options=options), tempfile.TemporaryDirectory() as directory:
                source = DATA / "stories260K"
                result = run_script("export_llama2c.py", source / "stories260K.bin", source / "tok512.bin", directory,
                                    *options)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                decoder = Decoder(directory)
                self.assertEqual(decoder.greedy(expected[:1], 63), expected[1:])
                for story, score in zip([[s] for s in stories] + [stories], scores):
                    result = perplexity(decoder, story, 512)
                    self.assertAlmostEqual(result["nll"], score, delta=1e-5)
                    self.assertAlmostEqual(result["perplexity"], math.exp(score), delta=1e-4)


if __name__ == "__main__":
    unittest.main()
