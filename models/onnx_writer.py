"""Writing an ONNX model whose weights are streamed to an external file.

`OnnxWriter` collects nodes and appends each weight to `model.onnx.data` the
moment it is added, so that the memory needed is that of one weight and never of
the model. Both files are written beside their final names and renamed at the
end: a failed export leaves an older one whole.
"""

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

ONNX_TYPE = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(ml_dtypes.bfloat16): TensorProto.BFLOAT16,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.bool_): TensorProto.BOOL,
}

PAGE = 4096
LINE = 64


class OnnxWriter:
    """A graph under construction. Values are named by strings, as in ONNX.

    `scope` prefixes the names of nodes, as the module path does in an export
    from torch. With `inline` the weights stay inside model.onnx.
    """

    def __init__(self, directory, opset, ir_version, inline=False):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.scope = ""
        self._opset = opset
        self._ir_version = ir_version
        self._nodes, self._initializers = [], []
        self._inputs, self._outputs = [], []
        self._names = {}
        self._constants = {}
        self._data_name = "model.onnx.data"
        self._data_part = self.directory / (self._data_name + ".part")
        self._data = None if inline else open(self._data_part, "wb")

    def add_input(self, name, dtype, shape):
        """A graph input; `shape` mixes ints and symbolic names."""
        self._inputs.append(helper.make_tensor_value_info(name, ONNX_TYPE[np.dtype(dtype)], shape))
        return name

    def add_output(self, name, dtype, shape):
        self._outputs.append(helper.make_tensor_value_info(name, ONNX_TYPE[np.dtype(dtype)], shape))

    def node(self, op_type, inputs, outputs=1, name=None, **attributes):
        """Appends one node and returns its output's name, or a list of them.

        `outputs` is a count, or the names themselves.
        """
        name = self._unique(f"{self.scope}/{name or op_type}")
        if isinstance(outputs, int):
            outputs = [f"{name}_output_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(op_type, inputs, outputs, name=name, **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def constant(self, value, dtype, as_node=False):
        """A small constant, one per value: an initializer, or a Constant node."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.dtype.name, array.shape, array.tobytes())
        if key not in self._constants:
            name = self._unique("/constant")
            tensor = self._tensor(name, array)
            tensor.raw_data = array.tobytes()
            if as_node:
                self._nodes.append(helper.make_node("Constant", [], [name], name=name, value=tensor))
            else:
                self._initializers.append(tensor)
            self._constants[key] = name
        return self._constants[key]

    def weight(self, name, array):
        """A weight, written out at once; large ones start at a page."""
        array = np.ascontiguousarray(array)
        tensor = self._tensor(name, array)
        if self._data is None:
            tensor.raw_data = array.tobytes()
        else:
            alignment = PAGE if array.nbytes >= 256 * PAGE else LINE
            offset = -(-self._data.tell() // alignment) * alignment
            self._data.write(bytes(offset - self._data.tell()))
            # The byte view costs no copy, also where numpy itself does not know
            # the element type.
            self._data.write(array.reshape(-1).view(np.uint8).data)
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", self._data_name), ("offset", offset), ("length", array.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
        self._initializers.append(tensor)
        return name

    def finish(self, graph_name, producer, metadata):
        """Checks the model, writes it and returns the path of model.onnx."""
        graph = helper.make_graph(self._nodes, graph_name, self._inputs, self._outputs, self._initializers)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self._opset)],
            ir_version=self._ir_version,
            producer_name=producer,
        )
        helper.set_model_props(model, metadata)
        path = self.directory / "model.onnx"
        part = self.directory / "model.onnx.part"
        part.write_bytes(model.SerializeToString(deterministic=True))
        if self._data is not None:
            self._data.close()
            os.replace(self._data_part, self.directory / self._data_name)
        os.replace(part, path)
        onnx.checker.check_model(str(path), full_check=True)
        return path

    @staticmethod
    def _tensor(name, array):
        return TensorProto(name=name, dims=array.shape, data_type=ONNX_TYPE[array.dtype])

    def _unique(self, name):
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else f"{name}_{count}"
