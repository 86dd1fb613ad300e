#!/usr/bin/env python3
"""What onnxruntime makes of a decoder: logits, greedy continuation, perplexity.

    ort_reference.py MODEL --tokens FILE [--logits OUT.npy] [--greedy N]
                           [--perplexity --context 512 [--bos ID]]

MODEL is a .onnx file or a directory: the file that genai_config.json names, or
model.onnx. FILE has one sequence of token ids per line. Prints one JSON object.

--logits      float32 [tokens, vocabulary], all lines one after another, each
              line from an empty cache in one piece
--greedy N    "greedy": per line the N most probable tokens that follow
--perplexity  "perplexity", "nll" (mean nats per scored token), "tokens"
              (scored): disjoint windows of --context tokens, the last one
              possibly short, each from an empty cache; a window's first token
              is not scored. Lines are taken as they stand; --bos ID puts this
              token first in each window (it counts to the window), as
              `llm-run perplexity --file` does where the tokenizer adds one.
"""

import argparse
import json
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnxruntime

NUMPY_TYPE = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(bfloat16)": ml_dtypes.bfloat16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


class Decoder:
    """A decoder in onnxruntime, in the signature of Optimum or of GenAI.

    Both name the cache past_key_values.{i}.key|value and present.{i}.key|value.
    GenAI has no position_ids, and leaves the head size to genai_config.json.
    """

    def __init__(self, path, threads=0):
        file = model_file(path)
        self.config = genai_config(file.parent) or {}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4  # errors come as exceptions
        self.session = onnxruntime.InferenceSession(str(file), options, ["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.past = [name for name in self.inputs if name.startswith("past_key_values.")]
        missing = {"input_ids"} - set(self.inputs) | {"logits"} - set(self.outputs)
        if missing:
            raise ValueError(f"{path} is no decoder: it has no {' and no '.join(sorted(missing))}")

    def empty_cache(self):
        cache = {}
        for name in self.past:
            _, heads, _, size = self.inputs[name].shape
            if not isinstance(size, int):
                size = self.config["model"]["decoder"]["head_size"]
            cache[name] = np.zeros((1, heads, 0, size), NUMPY_TYPE[self.inputs[name].type])
        return cache

    def step(self, tokens, cache, length):
        """Runs `tokens` after `length` cached ones.

        Returns their logits, float32 [tokens, vocabulary], and the next cache.
        """
        total = length + len(tokens)
        feeds = dict(cache)
        for name, value in (
            ("input_ids", np.array(tokens)),
            ("attention_mask", np.ones(total)),
            ("position_ids", np.arange(length, total)),
        ):
            if name in self.inputs:
                feeds[name] = value[None].astype(NUMPY_TYPE[self.inputs[name].type])
        results = dict(zip(self.outputs, self.session.run(None, feeds)))
        logits = results["logits"][0].astype(np.float32)
        return logits, {name: results[name.replace("past_key_values", "present")] for name in self.past}

    def logits(self, tokens):
        return self.step(tokens, self.empty_cache(), 0)[0]

    def greedy(self, tokens, count, stop=()):
        """Up to `count` tokens after `tokens`, through the cache."""
        generated, cache, length = [], self.empty_cache(), 0
        feed = list(tokens)
        while len(generated) < count:
            logits, cache = self.step(feed, cache, length)
            length += len(feed)
            feed = [int(np.argmax(logits[-1]))]
            generated += feed
            if feed[0] in stop:
                break
        return generated


def model_file(path):
    """The .onnx file of a model directory, or the file itself."""
    path = Path(path)
    if not path.is_dir():
        return path
    genai = genai_config(path)
    return path / (genai["model"]["decoder"]["filename"] if genai else "model.onnx")


def genai_config(directory):
    """genai_config.json of a directory, or None."""
    path = Path(directory) / "genai_config.json"
    return json.loads(path.read_text()) if path.exists() else None


def negative_log_likelihoods(logits, tokens):
    """Nats of tokens[1:] under logits[:-1], in double precision."""
    rows = logits[:-1].astype(np.float64)
    top = rows.max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(rows - top).sum(axis=-1)) + top[:, 0]
    return log_sum - rows[np.arange(len(rows)), tokens[1:]]


def windows(tokens, context, bos=None):
    """Disjoint windows of at most `context` tokens, BOS counted where given."""
    lead = [] if bos is None else [bos]
    stride = context - len(lead)
    return [lead + tokens[i:i + stride] for i in range(0, len(tokens), stride)]


def perplexity(decoder, lines, context, bos=None):
    scores = [negative_log_likelihoods(decoder.logits(window), window)
              for line in lines for window in windows(line, context, bos) if len(window) > 1]
    scores = np.concatenate(scores) if scores else np.zeros(0)
    if not len(scores):
        raise ValueError("there is no token to score")
    nll = float(scores.mean())
    return {"perplexity": float(np.exp(nll)), "nll": nll, "tokens": len(scores)}


def read_tokens(path):
    lines = [[int(word) for word in line.split()] for line in Path(path).read_text().splitlines()]
    return [line for line in lines if line]


def main():
    parser = argparse.ArgumentParser(description="Runs a decoder in onnxruntime.")
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--tokens", type=Path, required=True, metavar="FILE")
    parser.add_argument("--logits", type=Path, metavar="OUT.npy")
    parser.add_argument("--greedy", type=int, metavar="N")
    parser.add_argument("--perplexity", action="store_true")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--bos", type=int, metavar="ID")
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    if args.context < 2:
        parser.error("--context must be at least 2")

    try:
        lines = read_tokens(args.tokens)
        decoder = Decoder(args.model, args.threads)
        result = {}
        if args.logits:
            with open(args.logits, "wb") as file:
                np.save(file, np.concatenate([decoder.logits(line) for line in lines]))
        if args.greedy:
            result["greedy"] = [decoder.greedy(line, args.greedy) for line in lines]
        if args.perplexity:
            result |= perplexity(decoder, lines, args.context, args.bos)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"ort_reference.py: error: {error}")
    except Exception as error:
        # onnxruntime's errors have no base of their own.
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        sys.exit(f"ort_reference.py: error: onnxruntime: {str(error).strip()}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
