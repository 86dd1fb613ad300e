"""graph.py DIR: writes graph.onnx and inputs for it. With --check OUT, compares
what llm-run exec wrote there with numpy."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

directory = Path(sys.argv[1])
x = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
b = np.array([[1, 2, 3], [-1, 0.5, 8]], dtype=ml_dtypes.bfloat16)
weight = np.array([1, 2, 4], dtype=np.float32)

if len(sys.argv) > 2:
    out = Path(sys.argv[3])
    expected = x * weight + b.astype(np.float32)
    found = np.load(out / "sum_f32.npy")
    assert found.dtype == np.float32 and np.array_equal(found, expected), found
    print("sum/f32 agrees")
    half = onnx.TensorProto()
    half.ParseFromString((out / "half.pb").read_bytes())
    assert half.data_type == TensorProto.BFLOAT16 and half.name == "half", half
    bits = np.frombuffer(half.raw_data, dtype=ml_dtypes.bfloat16).reshape(tuple(half.dims))
    assert np.array_equal(bits, expected.astype(ml_dtypes.bfloat16)), bits
    print("half agrees")
    sys.exit()

nodes = [
    helper.make_node("Cast", ["b"], ["wide"], to=TensorProto.FLOAT),
    helper.make_node("Mul", ["x", "w"], ["scaled"]),
    helper.make_node("Add", ["scaled", "wide"], ["sum/f32"]),
    helper.make_node("Cast", ["sum/f32"], ["half"], to=TensorProto.BFLOAT16),
]
graph = helper.make_graph(
    nodes,
    "graph",
    [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]),
        helper.make_tensor_value_info("b", TensorProto.BFLOAT16, ["n", 3]),
    ],
    [
        helper.make_tensor_value_info("sum/f32", TensorProto.FLOAT, ["n", 3]),
        helper.make_tensor_value_info("half", TensorProto.BFLOAT16, ["n", 3]),
    ],
    [numpy_helper.from_array(weight, "w")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.save(model, directory / "graph.onnx")
np.save(directory / "x.npy", x)
np.save(directory / "long.npy", np.zeros((5, 3), np.float32))
tensor = helper.make_tensor("b", TensorProto.BFLOAT16, b.shape, b.astype(np.float32).flatten().tolist())
(directory / "b.pb").write_bytes(tensor.SerializeToString())
