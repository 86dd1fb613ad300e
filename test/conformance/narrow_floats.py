#!/usr/bin/env python3
# Part of the LLM compiler, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions between f32, f64 and the 16-bit floats, every code of them.

usage: narrow_floats.py RUNNER

Narrowing: each code's value, the middle between it and the next, and the
neighbours of that middle in the wide type, which a conversion in two roundings
gets wrong. Widening: all 65536 codes. For the least processor and for this one.
Ends in "N passed, M failed".
"""
import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tensors  # noqa: E402

NARROW = {
    TensorProto.BFLOAT16: (ml_dtypes.bfloat16, 0x7F80),
    TensorProto.FLOAT16: (np.float16, 0x7C00),
}
WIDE = {TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64}


def values_of(dtype, infinity):
    """The magnitudes of codes 0 to infinity; that of infinity is the number
    that would come after the largest."""
    codes = np.arange(infinity + 1, dtype=np.uint16)
    values = codes.view(dtype).astype(np.float64)
    values[infinity] = 2 * values[infinity - 1] - values[infinity - 2]
    return values


def narrowing(wide, dtype, infinity):
    """Numbers and the codes that they must round to."""
    values = values_of(dtype, infinity)
    middles = (values[:-1] + values[1:]) / 2
    codes = np.arange(infinity, dtype=np.uint16)
    even = codes + (codes & 1)
    # What is below the smallest number of the wide type is 0 there.
    exact = middles.astype(wide).astype(np.float64) == middles
    middles = middles.astype(wide)
    x = [
        values[:-1].astype(wide),
        middles[exact],
        np.nextafter(middles, wide(np.inf))[exact],
        np.nextafter(middles, wide(0))[exact],
        np.array([np.inf], wide),
    ]
    want = [codes, even[exact], codes[exact] + 1, codes[exact], [infinity]]
    x, want = np.concatenate(x), np.concatenate(want).astype(np.uint16)
    return np.concatenate([x, -x]), np.concatenate([want, want | 0x8000])


def nans(wide):
    """Positive and negative in turn; quiet ones and others."""
    bits, quiet = (np.uint32, 22) if wide is np.float32 else (np.uint64, 51)
    payloads = [1, 1 << (quiet - 5), 1 << quiet, (2 << quiet) - 1]
    sign = 1 << (8 * wide().itemsize - 1)
    infinity = sign - (2 << quiet)
    return np.array([infinity | p | s for p in payloads for s in (0, sign)], bits).view(wide)


def model_of(source, target):
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=target)],
        "cast",
        [helper.make_tensor_value_info("x", source, ["n"])],
        [helper.make_tensor_value_info("y", target, ["n"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check_narrow(got, want, infinity):
    codes, count = got.view(np.uint16), want.size
    wrong = np.flatnonzero(codes[:count] != want)
    if wrong.size:
        i = wrong[0]
        return f"{wrong.size} codes are wrong, first {codes[i]:#06x} for {want[i]:#06x}"
    # Quiet, with the sign that went in.
    rest, signs = codes[count:], np.arange(codes.size - count) % 2
    quiet = (infinity >> 1 | infinity) & 0x7FFF
    if not np.all((rest & quiet) == quiet) or not np.array_equal(rest >> 15, signs):
        return f"NaNs became {[hex(c) for c in rest]}"
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    np.seterr(all="ignore")
    passed = failed = 0
    for processor in ("x86-64", "x86-64-v3", "native"):
        jobs = []
        with tempfile.TemporaryDirectory() as root:
            listing = os.path.join(root, "list")
            with open(listing, "w") as file:
                for code, (narrow, infinity) in NARROW.items():
                    for wide_code, wide in WIDE.items():
                        x, want = narrowing(wide, narrow, infinity)
                        x = np.concatenate([x, nans(wide)])
                        jobs.append((wide_code, code, x, want))
                        every = np.arange(65536, dtype=np.uint16).view(narrow)
                        jobs.append((code, wide_code, every, every.astype(np.float64)))
                for i, (source, target, x, _) in enumerate(jobs):
                    stem = os.path.join(root, str(i))
                    onnx.save(model_of(source, target), stem + ".onnx")
                    tensors.write(stem + ".in", [tensors.from_value(x, source)])
                    file.write(f"{stem}.onnx\t{stem}.in\t{stem}.out\n")
            run = subprocess.run(
                [sys.argv[1], listing, "2", processor], stdout=subprocess.PIPE, text=True
            )
            said = dict(line.split("\t", 1) for line in run.stdout.splitlines())
            for i, (source, target, _, want) in enumerate(jobs):
                status = said.get(str(i), "no result")
                problem = None if status.startswith("ok") else status
                if not problem:
                    got = tensors.read(os.path.join(root, f"{i}.out"))[0][0]
                    if target in NARROW:
                        problem = check_narrow(got, want, NARROW[target][1])
                    elif not np.array_equal(got.astype(np.float64), want, equal_nan=True):
                        problem = "a code was widened to another value"
                if problem:
                    failed += 1
                    names = [TensorProto.DataType.Name(t) for t in (source, target)]
                    print(f"FAIL {processor}: {names[0]} to {names[1]}: {problem}")
                else:
                    passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
