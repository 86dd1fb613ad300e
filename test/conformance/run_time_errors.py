#!/usr/bin/env python3
# Part of the LLM compiler, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What only the run can find wrong ends in one message that names the node.

usage: run_time_errors.py RUNNER

Also arithmetic that traps in hardware (division by zero, the smallest integer
by -1), which must not. Ends in "N passed, M failed".
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tensors  # noqa: E402

F, I = np.float32, np.int64


def zeros(*shape):
    return np.zeros(shape, F)


# operator, inputs (all sizes become symbols but those of lists), attributes,
# what the message must match; an array where the run must succeed.
CASES = [
    ("Gather", [zeros(3, 2), np.array([0, 3], I)], {}, "an index is out of range"),
    ("Gather", [zeros(3, 2), np.array([-4, 0], I)], {}, "an index is out of range"),
    ("Gather", [zeros(3, 0), np.array([5], I)], {}, "an index is out of range"),
    ("Add", [zeros(2, 3), zeros(2, 4)], {}, "sizes do not broadcast along axis 1"),
    ("Add", [zeros(0), zeros(2)], {}, "sizes do not broadcast along axis 0"),
    ("MatMul", [zeros(2, 3), zeros(4, 2)], {}, "the inner sizes differ"),
    ("MatMul", [zeros(2, 1, 3), zeros(3, 3, 2)], {}, "batch sizes do not broadcast"),
    ("Concat", [zeros(2, 3), zeros(2, 4)], {"axis": 0}, "another size along axis 1"),
    ("Reshape", [zeros(2, 3), np.array([4, -1], I)], {}, "does not hold the input's"),
    ("Reshape", [zeros(2, 3), np.array([-1, -1], I)], {}, "more than one size is -1"),
    ("Reshape", [zeros(0, 3), np.array([1 << 62, 1 << 62], I)], {}, "negative or too large"),
    ("Reshape", [zeros(2, 3), np.array([-2, -3], I)], {}, "negative or too large"),
    ("Expand", [zeros(2, 3), np.array([2, 4], I)], {}, "does not broadcast with the input"),
    ("Tile", [zeros(2, 3), np.array([1, -1], I)], {}, "a count is negative or absurd"),
    ("Tile", [zeros(2, 3), np.array([1 << 39, 1 << 39], I)], {}, "negative or absurd size"),
    ("Slice", [zeros(4), np.array([0], I), np.array([4], I), np.array([0], I),
               np.array([0], I)], {}, "a step is 0"),
    ("Slice", [zeros(4), np.array([0], I), np.array([4], I), np.array([1], I)], {},
     "an axis is out of range"),
    ("TopK", [zeros(4), np.array([5], I)], {}, "k is negative or larger than the axis"),
    ("TopK", [zeros(4), np.array([-1], I)], {}, "k is negative or larger than the axis"),
    ("Split", [zeros(4), np.array([1, 2], I)], {}, "the parts do not add up"),
    ("Split", [zeros(4), np.array([6, -2], I)], {}, "negative or larger than the axis"),
    ("ArgMax", [zeros(0, 3)], {"axis": 0}, "the axis has no elements"),
    ("ConstantOfShape", [np.array([-1, 2], I)], {}, "negative or absurd size"),
    ("ConstantOfShape", [np.array([1 << 40, 1 << 40], I)], {}, "negative or absurd size"),
    ("ConstantOfShape", [np.array([1 << 33], I)], {}, "the memory limit is reached"),
    ("Range", [np.array(0, I), np.array(5, I), np.array(0, I)], {}, "a delta of 0"),
    ("Range", [np.array(-(1 << 63), I), np.array((1 << 63) - 1, I), np.array(1, I)], {},
     "the range is too long"),
    ("Range", [np.array(0, F), np.array(1, F), np.array(1e-30, F)], {}, "has no end"),
    ("Range", [np.array(0, F), np.array(np.inf, F), np.array(1, F)], {}, "has no end"),
    ("ScatterND", [zeros(4), np.array([[4]], I), zeros(1)], {}, "an index is out of range"),
    ("GatherElements", [zeros(3), np.array([3], I)], {}, "an index is out of range"),
    ("GatherElements", [zeros(0), np.array([-1], I)], {}, "an index is out of range"),
    ("GatherElements", [zeros(2, 3), np.zeros((3, 1), I)], {"axis": 1},
     "the indices reach past the input along axis 0"),
    ("GatherND", [zeros(2, 3), np.array([[0, 3]], I)], {}, "an index is out of range"),
    ("GatherND", [zeros(2, 3), np.array([[-3, 0]], I)], {}, "an index is out of range"),
    ("ScatterElements", [zeros(3), np.array([-4], I), zeros(1)], {},
     "an index is out of range"),
    ("ScatterElements", [zeros(3), np.array([0, 1], I), zeros(3)], {},
     "the updates do not fit the indices along axis 0"),
    ("TensorScatter", [zeros(1, 2, 3), zeros(1, 2, 3), np.array([1], I)], {},
     "an index is out of range"),
    ("Pad", [zeros(2, 3), np.array([0, -2, 0, -2], I)], {}, "cut off more than there is"),
    ("Pad", [zeros(2, 0), np.array([0, 1, 0, 0], I)], {"mode": "edge"},
     "there is no element to pad with along axis 1"),
    ("Pad", [zeros(2), np.array([1 << 62, 1 << 62], I)], {}, "a pad is absurd"),
    ("Pad", [zeros(2, 0), np.array([0, 1, 0, 1], I)], {}, zeros(2, 2)),
    ("Einsum", [zeros(2, 3)], {"equation": "ii->i"}, "does not hold the input's"),
    ("Einsum", [zeros(2, 0), zeros(0, 3)], {"equation": "ij,jk->ik"}, zeros(2, 3)),
    ("RMSNormalization", [zeros(2, 4), zeros(3)], {}, "do not fit the input"),
    ("Div", [np.array([7, -7, 0, -(1 << 63)], I), np.array([0, 2, 0, -1], I)], {},
     np.array([0, -3, 0, -(1 << 63)], I)),
    ("Mod", [np.array([7, -7, 0, -(1 << 63)], I), np.array([0, 2, 0, -1], I)], {},
     np.array([0, 1, 0, 0], I)),
    ("Add", [zeros(0), zeros(1)], {}, zeros(0)),
    ("MatMul", [zeros(2, 0), zeros(0, 3)], {}, zeros(2, 3)),
    ("ReduceMax", [zeros(2, 0)], {}, np.full((1, 1), -np.inf, F)),
    ("Cast", [np.array([np.nan, np.inf, -np.inf, 1e30], F)], {"to": 6},
     np.array([0, 2**31 - 1, -(2**31), 2**31 - 1], np.int32)),
]
# An allocation is not one node's in particular.
ALLOCATION = ("negative or absurd size", "the memory limit is reached")
OUTPUTS = {"TopK": 2, "Split": 2}


def model_of(operator, inputs, attributes):
    infos, names = [], []
    for i, array in enumerate(inputs):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        listed = array.dtype == I and array.ndim == 1 and (i or len(inputs) == 1)
        listed = listed and operator not in ("GatherElements", "ScatterElements")
        tuples = operator in ("GatherND", "ScatterND") and i == 1
        shape = [
            d if listed or (tuples and j) else f"d{i}_{j}" for j, d in enumerate(array.shape)
        ]
        names.append(f"x{i}")
        infos.append(helper.make_tensor_value_info(names[-1], kind, shape))
    outputs = [f"y{i}" for i in range(OUTPUTS.get(operator, 1))]
    node = helper.make_node(operator, names, outputs, name="/the/node", **attributes)
    kinds = [helper.np_dtype_to_tensor_dtype(inputs[0].dtype)] * len(outputs)
    if operator in ("ArgMax", "TopK"):
        kinds[-1] = onnx.TensorProto.INT64
    if operator == "ConstantOfShape":
        kinds = [onnx.TensorProto.FLOAT]
    if "to" in attributes:
        kinds = [attributes["to"]]
    graph = helper.make_graph(
        [node], "g", infos,
        [helper.make_tensor_value_info(n, k, None) for n, k in zip(outputs, kinds)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as root:
        listing = os.path.join(root, "list")
        with open(listing, "w") as file:
            for i, (operator, inputs, attributes, _) in enumerate(CASES):
                stem = os.path.join(root, str(i))
                onnx.save(model_of(operator, inputs, attributes), stem + ".onnx")
                tensors.write(stem + ".in", [numpy_helper.from_array(x) for x in inputs])
                file.write(f"{stem}.onnx\t{stem}.in\t{stem}.out\n")
        run = subprocess.run([sys.argv[1], listing], stdout=subprocess.PIPE, text=True)
        said = dict(line.split("\t", 1) for line in run.stdout.splitlines())
        for i, (operator, inputs, _, wanted) in enumerate(CASES):
            status = said.get(str(i), "no result")
            shapes = [x.shape for x in inputs]
            if isinstance(wanted, str):
                place = "" if wanted in ALLOCATION else "llm.* at node '/the/node': .*"
                good = re.match(f"run\t{place}.*{wanted}", status)
            else:
                good = status.startswith("ok")
                if good:
                    got = tensors.read(os.path.join(root, f"{i}.out"))[0][0]
                    good = np.array_equal(got, wanted) and got.shape == wanted.shape
                    status = repr(got)
            if not good:
                failed += 1
                print(f"FAIL {operator} {shapes}: {status}, expected {wanted}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
