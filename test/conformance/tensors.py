# Part of the LLM compiler, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as conformance_runner reads and writes them."""
import struct

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

# ONNX element type -> (the artifact's ElementType, bits).
CODES = {
    TensorProto.FLOAT: (1, 32),
    TensorProto.FLOAT16: (2, 16),
    TensorProto.BFLOAT16: (3, 16),
    TensorProto.DOUBLE: (4, 64),
    TensorProto.INT8: (5, 8),
    TensorProto.UINT8: (6, 8),
    TensorProto.INT16: (7, 16),
    TensorProto.UINT16: (8, 16),
    TensorProto.INT32: (9, 32),
    TensorProto.UINT32: (10, 32),
    TensorProto.INT64: (11, 64),
    TensorProto.UINT64: (12, 64),
    TensorProto.BOOL: (13, 8),
    TensorProto.INT4: (14, 4),
    TensorProto.UINT4: (15, 4),
    TensorProto.FLOAT8E4M3FN: (16, 8),
    TensorProto.FLOAT8E4M3FNUZ: (17, 8),
    TensorProto.FLOAT8E5M2: (18, 8),
    TensorProto.FLOAT8E5M2FNUZ: (19, 8),
    TensorProto.FLOAT4E2M1: (20, 4),
    TensorProto.FLOAT8E8M0: (21, 8),
    TensorProto.INT2: (22, 2),
    TensorProto.UINT2: (23, 2),
}
TYPES = {code: (onnx_type, bits) for onnx_type, (code, bits) in CODES.items()}


def from_value(value, onnx_type):
    """An array or a TensorProto as a TensorProto of `onnx_type`, data raw."""
    if isinstance(value, TensorProto):
        tensor = value
    else:
        array = np.asarray(value)
        wanted = onnx.helper.tensor_dtype_to_np_dtype(onnx_type)
        if array.dtype != wanted and array.dtype.itemsize == wanted.itemsize:
            array = array.view(wanted)
        tensor = numpy_helper.from_array(array)
    if tensor.data_type != onnx_type:
        raise TypeError(f"tensor of type {tensor.data_type}, not {onnx_type}")
    if tensor.HasField("raw_data"):
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor))


def write(path, tensors):
    """Writes TensorProtos with raw data."""
    with open(path, "wb") as file:
        file.write(struct.pack("<q", len(tensors)))
        for tensor in tensors:
            code, bits = CODES[tensor.data_type]
            data = tensor.raw_data
            head = [code, len(tensor.dims), *tensor.dims, len(data)]
            file.write(struct.pack(f"<{len(head)}q", *head))
            file.write(data)


def read(path):
    """The arrays of a file, with the ONNX type of each."""
    with open(path, "rb") as file:
        blob = file.read()
    at = 0

    def numbers(count):
        nonlocal at
        values = struct.unpack_from(f"<{count}q", blob, at)
        at += 8 * count
        return values

    result = []
    for _ in range(numbers(1)[0]):
        code, rank = numbers(2)
        dims = numbers(rank)
        (size,) = numbers(1)
        tensor = TensorProto()
        tensor.data_type = TYPES[code][0]
        tensor.dims.extend(dims)
        tensor.raw_data = blob[at : at + size]
        at += size
        result.append((numpy_helper.to_array(tensor), tensor.data_type))
    return result
