"""Writes a weight of 40 inputs, and statistics that do not fit it, into a directory."""

import json
import sys
from pathlib import Path

import numpy as np

from check_gptq import write_safetensors

directory = Path(sys.argv[1])
shape = "tensor<3x40xf32>"
(directory / "w.mlir").write_text(
    f'llm.weight @w : {shape} = #llm.dense<#llm.component<"data", {shape}, dense<0.25> : {shape}>>\n'
    f"func.func @f(%x: tensor<?x40xf32>) -> tensor<?x3xf32> {{\n"
    f"  %w = llm.get_weight @w : {shape}\n"
    f"  %y = llm.linear %x, %w : (tensor<?x40xf32>, {shape}) -> tensor<?x3xf32>\n"
    f"  return %y : tensor<?x3xf32>\n}}\n"
)
x = np.random.Generator(np.random.PCG64(3)).standard_normal((20, 40))
good = x.T @ x
nan, large, uneven = good.copy(), good.copy(), good.copy()
nan[7, 7] = np.nan
large[3, 4] = large[4, 3] = 2 * max(good[3, 3], good[4, 4])
uneven[3, 4] += 1
for name, tensors in {
    "good": {"w.gram": good},
    "tiny": {"w.gram": good * 1e-310},
    "huge": {"w.gram": good * 1e305},
    "other": {"v.gram": good},
    "shape": {"w.gram": good[:39]},
    "nan": {"w.gram": nan},
    "large": {"w.gram": large},
    "uneven": {"w.gram": uneven},
}.items():
    write_safetensors(directory / name, tensors)


def write_header(name, header):
    (directory / name).write_bytes(len(header).to_bytes(8, "little") + header)


(directory / "short").write_bytes(b"abc")
(directory / "header").write_bytes((2**63 - 1).to_bytes(8, "little") + b"{}")
write_header("deep", b"[" * 1000000)
for name, key, dims, offsets in (
    ("beyond", "w.gram", [40, 40], [0, 12800]),
    ("overflow", "w.gram", [2**62, 2**62], [0, 0]),
    ("escape", "\x1b[2J", [1], [0, 8]),
):
    write_header(name, json.dumps({key: {"dtype": "F64", "shape": dims, "data_offsets": offsets}}).encode())
