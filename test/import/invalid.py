# RUN: %python %s llm-opt %t %shared
"""Damaged and hostile files: each ends in one located error, at once, without
an allocation of what the file claims.

usage: invalid.py LLM_OPT WORKDIR SHARED_DATA
"""
import pathlib
import re
import resource
import subprocess
import sys
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

TOOL, WORK, SHARED = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
MEMORY = 2 << 30


def run(path):
    """(exit code, stderr) of an import under limits of time and memory."""
    done = subprocess.run(
        [TOOL, str(path), "-o", str(WORK / "out.mlir")], capture_output=True, text=True, timeout=30, errors="replace",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)))
    return done.returncode, done.stderr


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def model(graph, **changes):
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def adds(weight, nodes=None):
    """y = x + w with the initializer `weight`."""
    nodes = nodes or [helper.make_node("Add", ["x", "w"], ["y"])]
    return model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weight]))


def floats(raw=b"\0" * 16, dims=(4,), name="w", data_type=TensorProto.FLOAT):
    tensor = TensorProto(name=name, data_type=data_type, raw_data=raw)
    tensor.dims.extend(dims)
    return tensor


def external(location="w.bin", **entries):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    tensor.dims.append(4)
    for key, value in dict(location=location, **entries).items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    return tensor


def nested_ifs(depth):
    """`depth` If nodes, one in the other, as bytes: the Python package nests less."""
    def result(name):
        return field(12, helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]).SerializeToString())

    def attribute(name, graph):
        return field(5, field(1, name) + varint(20 << 3) + bytes([onnx.AttributeProto.GRAPH]) + field(6, graph))

    graph = field(1, field(1, b"x") + field(2, b"last") + field(4, b"Abs")) + result("last")
    for level in range(depth):
        other = field(1, field(1, b"x") + field(2, b"e%d" % level) + field(4, b"Neg")) + result(f"e{level}")
        node = (field(1, b"c") + field(2, b"t%d" % level) + field(4, b"If") + attribute(b"then_branch", graph) +
                attribute(b"else_branch", other))
        graph = field(1, node) + result(f"t{level}")
    for name, kind, shape in (("x", TensorProto.FLOAT, [4]), ("c", TensorProto.BOOL, [])):
        graph += field(11, helper.make_tensor_value_info(name, kind, shape).SerializeToString())
    return b"\x08\x0a" + field(7, graph) + field(8, varint(2 << 3) + b"\x15")


class Invalid(unittest.TestCase):
    def setUp(self):
        self.directory = WORK / self.id().rsplit(".", 1)[-1]
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "w.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())

    def write(self, content, name="model.onnx"):
        path = self.directory / name
        path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
        return path

    def rejects(self, content, message):
        path = self.write(content)
        code, stderr = run(path)
        self.assertEqual(code, 1, stderr)
        self.assertEqual(len(re.findall(r"error: ", stderr)), 1, stderr)
        self.assertTrue(stderr.startswith(str(path)), stderr)
        self.assertIn(message, stderr)

    def accepts(self, content):
        path = self.write(content)
        code, stderr = run(path)
        self.assertEqual((code, stderr), (0, ""))

    def test_wire(self):
        whole = adds(floats()).SerializeToString()
        self.accepts(whole)
        # The graph is followed by opset_import: no part of the file is a model.
        for length in range(0, len(whole), 5):
            self.rejects(whole[:length], "")
        self.rejects(b"", "the file is empty")
        self.rejects(b"\x3a" + b"\xff" * 9 + b"\x01", "runs past the end")
        self.rejects(b"\x08" + b"\x80" * 10 + b"\x01", "more than 64 bits")
        self.rejects(b"\x0b\x0c", "not the wire format")
        self.rejects(b"\x00", "not a field")
        self.rejects(b"\x08\x0a", "has no graph")

    def test_deep_messages(self):
        # Attribute -> graph -> node -> attribute ..., 400 levels of each.
        graph = b""
        for _ in range(400):
            graph = field(1, field(5, field(6, graph)))
        self.rejects(b"\x08\x0a" + field(7, graph), "nest too deeply")

    def test_nested_ifs(self):
        self.accepts(nested_ifs(30))
        self.accepts(nested_ifs(64))
        self.rejects(nested_ifs(65), "nest")
        self.rejects(nested_ifs(200), "nest")

    def test_sizes(self):
        self.rejects(adds(floats(dims=[1 << 40])), "takes 4398046511104 bytes, the file has 16")
        self.rejects(adds(floats(dims=[1 << 31, 1 << 31, 4])), "negative or too large")
        self.rejects(adds(floats(dims=[-4])), "negative or too large")
        self.rejects(adds(floats(dims=[0, 1 << 62])), "negative or too large")
        self.rejects(adds(floats(raw=b"\0" * 12)), "takes 16 bytes, the file has 12")
        self.rejects(adds(floats(dims=[1] * 65)), "negative or too large")
        self.rejects(adds(floats(data_type=TensorProto.STRING)), "STRING are not supported")
        self.rejects(adds(floats(data_type=TensorProto.UNDEFINED)), "UNDEFINED are not supported")
        self.rejects(adds(floats(data_type=99)), "type 99 are not supported")
        self.rejects(adds(floats(name="")), "has no name")
        both = floats()
        both.float_data.extend([1, 2, 3, 4])
        self.rejects(adds(both), "data in several fields")
        wrong = TensorProto(name="w", data_type=TensorProto.INT32, dims=[4])
        wrong.float_data.extend([1, 2, 3, 4])
        self.rejects(adds(wrong), "field of another type")
        large = TensorProto(name="w", data_type=TensorProto.INT8, dims=[1], int32_data=[300])
        self.rejects(adds(large), "does not fit INT8")

    def test_external(self):
        self.accepts(adds(external()))
        self.accepts(adds(external(offset="0", length="16")))
        self.rejects(adds(external(location=None)), "without a location")
        self.rejects(adds(external(location="")), "the location is empty")
        self.rejects(adds(external(location="/etc/passwd")), "must be relative")
        self.rejects(adds(external(location="../w.bin")), "leaves the model's directory")
        self.rejects(adds(external(location="a/../../w.bin")), "leaves the model's directory")
        self.rejects(adds(external(location="w.bin\0x")), "NUL")
        self.rejects(adds(external(location="absent.bin")), "No such file")
        self.rejects(adds(external(location=".")), "")
        self.rejects(adds(external(offset="-1")), "no size in bytes")
        self.rejects(adds(external(length="-1")), "no size in bytes")
        self.rejects(adds(external(offset="1e3")), "no size in bytes")
        self.rejects(adds(external(offset="99999999999999999999999")), "no size in bytes")
        self.rejects(adds(external(offset=str(2**64 - 8))), "which has 16")
        self.rejects(adds(external(offset="4")), "which has 16")
        self.rejects(adds(external(length="12")), "its external data has 12")
        self.rejects(adds(external(basepath="/etc")), "basepath")

    def test_links(self):
        """A link may lead below the model's directory, or to where the model itself is linked from."""
        inside = self.directory / "blobs"
        inside.mkdir(exist_ok=True)
        (inside / "data").write_bytes(b"\0" * 16)
        link = self.directory / "link.bin"
        link.unlink(missing_ok=True)
        link.symlink_to("blobs/data")
        self.accepts(adds(external(location="link.bin")))
        link.unlink()
        link.symlink_to("/etc/passwd")
        self.rejects(adds(external(location="link.bin")), "outside the model's directory")
        # A cache: snapshot/model.onnx -> ../store/a, snapshot/w.bin -> ../store/b.
        store, snapshot = self.directory / "store", self.directory / "snapshot"
        store.mkdir(exist_ok=True)
        snapshot.mkdir(exist_ok=True)
        (store / "a").write_bytes(adds(external()).SerializeToString())
        (store / "b").write_bytes(b"\0" * 16)
        for name, target in (("model.onnx", "../store/a"), ("w.bin", "../store/b")):
            (snapshot / name).unlink(missing_ok=True)
            (snapshot / name).symlink_to(target)
        self.assertEqual(run(snapshot / "model.onnx"), (0, ""))

    def test_special_files(self):
        for path in ("/dev/zero", "/dev/null"):
            link = self.directory / "device.onnx"
            link.unlink(missing_ok=True)
            link.symlink_to(path)
            code, stderr = run(link)
            self.assertEqual(code, 1)
            self.assertIn("cannot read the model", stderr)
        code, stderr = run(self.directory / "absent.onnx")
        self.assertEqual(code, 1)
        self.assertIn("No such file", stderr)

    def test_names(self):
        node = helper.make_node
        self.rejects(adds(floats(), [node("Add", ["x", "w"], ["y"]), node("Abs", ["x"], ["y"])]), "'y' is defined twice")
        self.rejects(adds(floats(), [node("Abs", ["x"], ["w"]), node("Abs", ["x"], ["y"])]), "'w' is defined twice")
        self.rejects(adds(floats(), [node("Add", ["y", "w"], ["y"])]), "has a cycle")
        twice = adds(floats())
        twice.graph.initializer.append(floats())
        self.rejects(twice, "'w' is defined twice")
        strange = adds(floats(), [node("Add", ["x", "w\n\x01\"'"], ["y"])])
        self.rejects(strange, r"""'w\0A\01\22'' is not defined""")

    def test_no_outputs(self):
        node = helper.make_node
        for name, inputs in (("Split", ["x"]), ("Abs", ["x"]), ("Add", ["x", "w"]), ("Constant", [])):
            nodes = [node(name, inputs, []), node("Abs", ["x"], ["y"])]
            self.rejects(adds(floats(), nodes), "has no outputs")

    def test_folding(self):
        """What is computed from constants is never materialized."""
        node = helper.make_node
        huge = helper.make_tensor("s", TensorProto.INT64, [1], [1 << 62])
        self.rejects(adds(floats(), [node("Constant", [], ["s"], value=huge), node("ConstantOfShape", ["s"], ["y"])]),
                     "too many elements")
        large = helper.make_tensor("s", TensorProto.INT64, [1], [1 << 38])
        self.accepts(adds(floats(), [node("Constant", [], ["s"], value=large), node("ConstantOfShape", ["s"], ["y"])]))
        bounds = [node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [], [value]))
                  for name, value in (("a", -2**62), ("b", 2**62), ("d", 1))]
        self.rejects(adds(floats(), bounds + [node("Range", ["a", "b", "d"], ["y"])]), "too many elements")

    def test_call_explosion(self):
        """Functions that call the next one twice: 2^40 nodes when inlined."""
        made = adds(floats(), [helper.make_node("f0", ["x"], ["y"], domain="l")])
        made.opset_import.append(helper.make_opsetid("l", 1))
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("l", 1)]
        for i in range(40):
            callee = [helper.make_node(f"f{i + 1}", ["a"], [name], domain="l") for name in ("b", "c")]
            made.functions.append(helper.make_function("l", f"f{i}", ["a"], ["c"], callee, imports))
        made.functions.append(helper.make_function(
            "l", "f40", ["a"], ["b"], [helper.make_node("Abs", ["a"], ["b"])], imports))
        self.rejects(made, "nodes after functions are inlined")

    @unittest.skipUnless((SHARED / "invalid").is_dir(), "the shared data is not there")
    def test_shared_corpus(self):
        """The collection's own README says which are to be taken."""
        table = (SHARED / "invalid" / "README.md").read_text()
        rows = re.findall(r"^\| (\S+\.onnx) \| \d+ \| (accept|reject)", table, flags=re.M)
        self.assertGreater(len(rows), 20)
        for name, expected in rows:
            with self.subTest(name):
                code, stderr = run(SHARED / "invalid" / name)
                self.assertEqual(code, 0 if expected == "accept" else 1, stderr)
                self.assertEqual(stderr.count("error: "), code, stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
