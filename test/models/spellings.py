# RUN: %python %s
"""The graph builder: both spellings against numpy, each other, and the seed."""

import tempfile
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx

from llama_oracle import forward, run_script

from llama_graph import LlamaConfig, export_decoder
from ort_reference import Decoder
from tiny_llama import random_weights

COMPOSITE_OPERATORS = {
    "Add", "Attention", "Cast", "Concat", "Expand", "Gather", "MatMul", "Mul", "RMSNormalization", "Reshape",
    "RotaryEmbedding", "Shape", "Sigmoid", "Transpose", "Unsqueeze"}
DECOMPOSED_OPERATORS = {
    "Add", "And", "Cast", "Concat", "Constant", "Expand", "Gather", "LessOrEqual", "MatMul", "Mul", "Neg", "Pow",
    "Range", "Reciprocal", "ReduceMean", "Reshape", "Shape", "Sigmoid", "Slice", "Softmax", "Sqrt", "Transpose",
    "Unsqueeze", "Where"}


def config(**changes):
    sizes = dict(vocab_size=61, hidden_size=24, intermediate_size=36, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-5, rope_theta=10000.0,
                 max_position_embeddings=64, tie_word_embeddings=True)
    return LlamaConfig(**(sizes | changes))


CONFIGS = {
    "grouped": config(),
    "untied": config(tie_word_embeddings=False),
    "all heads": config(num_key_value_heads=4),
    "one kv head": config(num_key_value_heads=1),
    "wide heads": config(head_dim=16, rope_theta=500.0, rms_norm_eps=0.1),
}


class Spellings(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.tokens = np.random.default_rng(1).integers(0, 61, 23).tolist()

    def export(self, config, decomposed, **options):
        name = f"{len(list(self.directory.iterdir()))}"
        weights = random_weights(config, 3)
        return export_decoder(self.directory / name, config, weights, decomposed=decomposed, **options)

    def assert_close(self, ours, reference, tolerance=1e-5):
        self.assertEqual(ours.shape, reference.shape)
        self.assertLess(np.abs(ours - reference).max(), tolerance * np.abs(reference).max())

    def test_logits_equal_numpy(self):
        for name, sizes in CONFIGS.items():
            reference = forward(sizes, random_weights(sizes, 3), self.tokens)
            for decomposed in (False, True):
                with self.subTest(name, decomposed=decomposed):
                    self.assert_close(Decoder(self.export(sizes, decomposed)).logits(self.tokens), reference)

    def test_logits_through_the_cache(self):
        reference = forward(config(), random_weights(config(), 3), self.tokens)
        for decomposed in (False, True):
            with self.subTest(decomposed=decomposed):
                decoder = Decoder(self.export(config(), decomposed))
                cache, rows, begin = decoder.empty_cache(), [], 0
                for end in (7, 8, 9, 20, 23):
                    logits, cache = decoder.step(self.tokens[begin:end], cache, begin)
                    rows.append(logits)
                    begin = end
                self.assert_close(np.concatenate(rows), reference)

    def test_left_padding_changes_nothing(self):
        short, pad = self.tokens[:9], 4
        reference = forward(config(), random_weights(config(), 3), short)
        ids = np.array([[5] * pad + short, self.tokens[:9 + pad]])
        mask = np.array([[0] * pad + [1] * 9, [1] * (9 + pad)])
        positions = np.maximum(mask.cumsum(-1) - 1, 0)
        for decomposed in (False, True):
            with self.subTest(decomposed=decomposed):
                session = Decoder(self.export(config(), decomposed)).session
                feeds = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
                feeds |= {i.name: np.zeros((2, 2, 0, 6), np.float32) for i in session.get_inputs()
                          if i.name.startswith("past")}
                logits = session.run(["logits"], feeds)[0]
                self.assert_close(logits[0, pad:], reference)

    def test_frequency_factors_divide_the_frequencies(self):
        factors = np.array([1, 2, 8], np.float32)
        for decomposed in (False, True):
            with self.subTest(decomposed=decomposed):
                path = self.export(config(), decomposed, frequency_factors=factors)
                tables = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
                angle = 50 * 10000.0 ** (-np.arange(3) / 3) / factors
                np.testing.assert_allclose(tables["model.rotary_emb.cos_cached"][50], np.cos(angle), atol=1e-7)
                np.testing.assert_allclose(tables["model.rotary_emb.sin_cached"][50], np.sin(angle), atol=1e-7)

    def test_spellings_share_their_weights(self):
        paths = [self.export(config(), decomposed) for decomposed in (False, True)]
        datas = [path.with_name("model.onnx.data").read_bytes() for path in paths]
        self.assertEqual(*datas)
        models = [onnx.load(path, load_external_data=False) for path in paths]
        places = [{t.name: {e.key: e.value for e in t.external_data} for t in m.graph.initializer if t.external_data}
                  for m in models]
        self.assertEqual(*places)
        self.assertEqual(set(places[0]) - set(config().weight_shapes()),
                         {"model.rotary_emb.cos_cached", "model.rotary_emb.sin_cached"})
        for place in places[0].values():
            self.assertEqual(int(place["offset"]) % 64, 0)

    def test_operators_are_those_of_the_documentation(self):
        for decomposed, expected in ((False, COMPOSITE_OPERATORS), (True, DECOMPOSED_OPERATORS)):
            model = onnx.load(self.export(config(), decomposed), load_external_data=False)
            self.assertEqual({node.op_type for node in model.graph.node}, expected)
            self.assertEqual([(o.domain, o.version) for o in model.opset_import], [("", 23)])
            self.assertEqual(model.ir_version, 11)

    def test_half_precision_spellings(self):
        reference = forward(config(), random_weights(config(), 3), self.tokens)
        for dtype in (np.float16, ml_dtypes.bfloat16):
            for decomposed in (False, True):
                with self.subTest(np.dtype(dtype).name, decomposed=decomposed):
                    model = onnx.load(self.export(config(), decomposed, dtype=dtype), load_external_data=False)
                    expected = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
                    types = {t.data_type for t in model.graph.initializer if t.external_data}
                    types |= {o.type.tensor_type.elem_type for o in model.graph.output}
                    self.assertEqual(types, {expected})
        # onnxruntime's CPU has kernels for the decomposed float16 spelling only.
        path = self.export(config(), True, dtype=np.float16)
        self.assert_close(Decoder(path).logits(self.tokens), reference, 2e-2)

    def test_inline_weights_are_the_same(self):
        apart, inside = self.export(config(), False), self.export(config(), False, inline=True)
        self.assertEqual([p.name for p in inside.parent.iterdir()], ["model.onnx"])
        weights = [{t.name: onnx.numpy_helper.to_array(t).tobytes() for t in onnx.load(path).graph.initializer}
                   for path in (apart, inside)]
        self.assertEqual(*weights)

    def test_same_seed_same_bytes(self):
        for i, seed in enumerate((7, 7, 8)):
            self.assertEqual(run_script("tiny_llama.py", self.directory / f"run{i}", "--seed", seed).returncode, 0)
        files = [[p.read_bytes() for p in sorted((self.directory / f"run{i}").iterdir())] for i in range(3)]
        self.assertEqual(files[0], files[1])
        self.assertNotEqual(files[0], files[2])

    def test_wrong_sizes_are_usage_errors(self):
        for options in (["--heads", 4, "--kv-heads", 3], ["--hidden", 30, "--heads", 4], ["--head-dim", 3],
                        ["--vocab", 0], ["--dtype", "f64"]):
            result = run_script("tiny_llama.py", self.directory / "wrong", *options)
            self.assertEqual(result.returncode, 2, options)
            self.assertFalse((self.directory / "wrong").exists())


if __name__ == "__main__":
    unittest.main()
