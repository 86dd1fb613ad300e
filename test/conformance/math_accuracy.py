#!/usr/bin/env python3
# Part of the LLM compiler, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementary functions of the generic path against NumPy in extended precision.

usage: math_accuracy.py RUNNER

Dense grids, random arguments of every magnitude and special values, in f32 and
f64. Errors are in units in the last place of the exact result; f32 results may
be 1 off, f64 ones as far as BOUNDS says. Ends in "N passed, M failed".
"""
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tensors  # noqa: E402

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, 1e-310, 1e-45]
# Largest error in ulp of f64 results.
BOUNDS = {"Exp": 2, "Log": 2, "Sin": 2, "Cos": 2, "Tanh": 4, "Erf": 4, "Pow": 2, "Mod": 0}
PROCESSORS = ("x86-64-v3", "x86-64")


def exact_erf(x):
    """erf in extended precision: the series of erfc's complement, all terms of
    one sign (NumPy has no erf)."""
    x = np.asarray(x, np.longdouble)
    a = np.minimum(np.abs(x), np.longdouble(7))
    term = a.copy()
    total = a.copy()
    for n in range(1, 400):
        term = term * 2 * a * a / (2 * n + 1)
        total = total + term
    pi = np.longdouble("3.14159265358979323846264338327950288")
    result = 2 / np.sqrt(pi) * np.exp(-a * a) * total
    result = np.where(np.abs(x) > 7, 1, np.minimum(result, 1))
    return np.copysign(np.where(np.isnan(x), np.nan, result), x)


def remainder(x, y):
    return np.array([safe_fmod(a, b) for a, b in zip(x.tolist(), y.tolist())])


def safe_fmod(a, b):
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    return math.fmod(a, b)


EXACT = {
    "Exp": np.exp,
    "Log": np.log,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tanh": np.tanh,
    "Erf": exact_erf,
    "Pow": np.power,
    "Mod": remainder,
}


def arguments(operator, dtype, rng):
    info = np.finfo(dtype)
    magnitudes = rng.standard_normal(4000) * np.exp2(
        rng.uniform(info.minexp, info.maxexp - 2, 4000)
    )
    if operator in ("Sin", "Cos"):
        # The longdouble oracle reduces its argument well up to 2^60.
        magnitudes = magnitudes[np.abs(magnitudes) < 2.0**60]
    grid = {
        "Exp": np.linspace(-760, 720, 20001),
        "Log": np.exp2(np.linspace(-1074, 1023, 20001)),
        "Sin": np.linspace(-1000, 1000, 20001),
        "Cos": np.linspace(-1000, 1000, 20001),
        "Tanh": np.linspace(-25, 25, 20001),
        "Erf": np.linspace(-7, 7, 20001),
        "Pow": np.linspace(0, 50, 20001),
        "Mod": np.linspace(-1000, 1000, 20001),
    }[operator]
    near = 1 + rng.uniform(-1e-3, 1e-3, 2000)
    x = np.concatenate([grid, magnitudes, near, SPECIAL])
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    if operator not in ("Pow", "Mod"):
        return [x]
    if operator == "Pow":
        y = rng.uniform(-30, 30, x.size)
        y[::3] = np.rint(y[::3])
        y[-2000 - len(SPECIAL) : -len(SPECIAL)] *= 1000
    else:
        y = rng.standard_normal(x.size) * np.exp2(rng.uniform(-20, 20, x.size))
    y = y.astype(dtype)
    both = np.array(SPECIAL + [0.5, 2.0, 3.0, -2.0, -3.0, 1e300], np.float64)
    with np.errstate(all="ignore"):
        a, b = np.meshgrid(both.astype(dtype), both.astype(dtype))
    return [np.concatenate([x, a.ravel()]), np.concatenate([y, b.ravel()])]


def model_of(operator, onnx_type):
    names = ["x", "y"] if operator in ("Pow", "Mod") else ["x"]
    attributes = {"fmod": 1} if operator == "Mod" else {}
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["z"], **attributes)],
        operator,
        [helper.make_tensor_value_info(n, onnx_type, ["n"]) for n in names],
        [helper.make_tensor_value_info("z", onnx_type, ["n"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(operator, dtype, inputs, got):
    """The largest error in ulp, or a message."""
    wide = [x.astype(np.longdouble) for x in inputs]
    with np.errstate(all="ignore"):
        if operator == "Mod":
            exact = remainder(*[x.astype(np.float64) for x in inputs])
            exact = exact.astype(np.longdouble)
        else:
            exact = EXACT[operator](*wide)
        want = exact.astype(dtype)
        same = (got == want) & (np.signbit(got) == np.signbit(want))
        same |= np.isnan(got) & np.isnan(want)
        # Where either is special, they must be the same; a result that just
        # rounds to infinity may stop at the largest number.
        special = ~np.isfinite(want) | ~np.isfinite(got)
        wrong = special & ~same
        if wrong.any():
            i = int(np.argmax(wrong))
            return f"at {[x[i] for x in inputs]}: {got[i]}, not {want[i]}"
        spacing = np.spacing(np.abs(want)).astype(np.longdouble)
        error = np.abs(got.astype(np.longdouble) - exact) / spacing
        error = np.where(same | special, 0, error)
    if operator in ("Sin", "Cos") and dtype == np.float64:
        # Near zeros the bound is absolute.
        absolute = np.abs(got.astype(np.longdouble) - exact) < 2.0**-52
        error = np.where(absolute, 0, error)
    worst = int(np.argmax(error))
    bound = 1 if dtype == np.float32 else BOUNDS[operator]
    if error[worst] > bound:
        return (
            f"at {[x[worst] for x in inputs]}: {got[worst]!r}, not {want[worst]!r}: "
            f"{float(error[worst]):.3g} ulp"
        )
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rng = np.random.default_rng(7)
    jobs = []
    with tempfile.TemporaryDirectory() as root:
        listing = os.path.join(root, "list")
        with open(listing, "w") as file:
            for operator in EXACT:
                for dtype in (np.float32, np.float64):
                    onnx_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
                    stem = os.path.join(root, str(len(jobs)))
                    inputs = arguments(operator, dtype, rng)
                    onnx.save(model_of(operator, onnx_type), stem + ".onnx")
                    tensors.write(
                        stem + ".in", [tensors.from_value(x, onnx_type) for x in inputs]
                    )
                    file.write(f"{stem}.onnx\t{stem}.in\t{stem}.out\n")
                    jobs.append((operator, dtype, inputs, stem))
        failed = 0
        # With multiply-adds and without.
        for processor in PROCESSORS:
            run = subprocess.run(
                [sys.argv[1], listing, "2", processor], stdout=subprocess.PIPE, text=True
            )
            said = dict(line.split("\t", 1) for line in run.stdout.splitlines())
            for i, (operator, dtype, inputs, stem) in enumerate(jobs):
                status = said.get(str(i), "no result")
                problem = None if status.startswith("ok") else status
                if not problem:
                    problem = check(operator, dtype, inputs, tensors.read(stem + ".out")[0][0])
                if problem:
                    failed += 1
                    print(f"FAIL {processor}: {operator} {np.dtype(dtype).name}: {problem}")
    print(f"{len(PROCESSORS) * len(jobs) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
