"""check_statistics.py MODEL TOKENS STATISTICS: compares statistics with what NumPy
makes of the products' inputs that onnxruntime computes, sequence by sequence."""

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, os.path.join(os.environ["LLM_SOURCE_DIR"], "models"))
from ort_reference import Decoder

model, tokens, statistics = map(Path, sys.argv[1:])


def read_safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    import json

    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", entry
        begin, end = entry["data_offsets"]
        raw = data[8 + length + begin : 8 + length + end]
        tensors[name] = np.frombuffer(raw, np.float32).reshape(entry["shape"])
    return tensors


graph = onnx.load(model / "model.onnx", load_external_data=False)
weights = {i.name for i in graph.graph.initializer if len(i.dims) == 2}
# A table that is also the vocabulary's matrix is turned around first.
matrices = {name: name for name in weights}
matrices |= {n.output[0]: n.input[0] for n in graph.graph.node if n.op_type == "Transpose" and n.input[0] in weights}
inputs = {}
for node in graph.graph.node:
    if node.op_type in ("MatMul", "Gemm") and node.input[1] in matrices:
        inputs[matrices[node.input[1]]] = node.input[0]
present = {o.name for o in graph.graph.output}
for name in sorted(set(inputs.values()) - present):
    graph.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
observed = model / "observed.onnx"
onnx.save(graph, observed)
decoder = Decoder(observed)

rows = {name: [] for name in inputs.values()}
for line in tokens.read_text().splitlines():
    ids = [int(word) for word in line.replace(",", " ").split()]
    feeds = dict(decoder.empty_cache())
    for name, value in (
        ("input_ids", np.array(ids)),
        ("attention_mask", np.ones(len(ids))),
        ("position_ids", np.arange(len(ids))),
    ):
        if name in decoder.inputs:
            feeds[name] = value.astype(np.int64)[None]
    for name, value in zip(rows, decoder.session.run(list(rows), feeds)):
        rows[name].append(value.reshape(-1, value.shape[-1]).astype(np.float64))

found = read_safetensors(statistics)
checked = 0
for weight, name in inputs.items():
    if not any(key.startswith(weight + ".") for key in found):
        continue
    x = np.concatenate(rows[name])
    expected = {
        "gram": x.T @ x / len(x),
        "abs_mean": np.abs(x).mean(0),
        "square_mean": (x * x).mean(0),
        "min": x.min(0),
        "max": x.max(0),
    }
    for kind, value in expected.items():
        if f"{weight}.{kind}" not in found:
            continue
        got = found.pop(f"{weight}.{kind}")
        scale = np.abs(value).max()
        error = np.abs(got - value).max() / scale
        assert got.shape == value.shape and error < 2e-5, (weight, kind, error)
        checked += 1
assert not found, sorted(found)
print(f"{checked} tensors agree")
