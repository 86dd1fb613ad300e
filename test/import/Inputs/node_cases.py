"""The operator cases of the onnx package: types against their expected outputs.

usage: node_cases.py LLM_OPT WORKDIR STRIDE

Every STRIDE-th case is imported. Where the operator is supported, the results
of @main must have the element types and, where static, the sizes of the arrays
that the case expects. A case that is refused must be refused in one error, and
only for a reason in REFUSED.
"""
import pathlib
import re
import subprocess
import sys
import warnings

import numpy as np
import onnx
from onnx import helper
from onnx.backend.test.case.node import collect_testcases

ELEMENTS = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "i1",
            "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
            "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
            "float8_e4m3fn": "f8E4M3FN", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2",
            "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN",
            "int4": "i4", "uint4": "ui4", "int2": "i2", "uint2": "ui2"}
REFUSED = [
    r"operators? (is|are) not supported",
    r"is not supported",
    r"are not supported",
    r"rank of '.*' is not known",
    r"is not a tensor; only tensors are supported",
    r"so the rank of the result is not known",
    r"only a constant axis is supported",
    r"only constant axes are supported",
    r"has rows of type '.*'; only static ones are supported",
    r"only supported for causal attention",
]


def results(text):
    """[(element, [sizes])] of @main."""
    signature = re.search(r"func\.func @main\(.*\) -> (.*) \{$", text, flags=re.M).group(1)
    found = []
    for body in re.findall(r"tensor<([^>]*)>", signature):
        *sizes, element = body.split("x")
        found.append((element, [None if size == "?" else int(size) for size in sizes]))
    return found


def main() -> int:
    tool, work, stride = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    work.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    imported = refused = failures = 0
    for case in collect_testcases(None)[::stride]:
        path = work / "case.onnx"
        onnx.save(case.model, path)
        run = subprocess.run([tool, str(path)], capture_output=True, text=True, timeout=60)
        if run.returncode != 0:
            ok = run.returncode == 1 and run.stderr.count("error: ") == 1 and any(
                re.search(reason, run.stderr) for reason in REFUSED)
            refused += 1
            if not ok:
                failures += 1
                print(f"{case.name}: exit code {run.returncode}: {run.stderr[:400]}")
            continue
        imported += 1
        for _, outputs in case.data_sets:
            for value, (element, sizes) in zip(outputs, results(run.stdout), strict=True):
                if isinstance(value, onnx.TensorProto):
                    kind, shape = np.dtype(helper.tensor_dtype_to_np_dtype(value.data_type)).name, value.dims
                else:
                    kind, shape = np.asarray(value).dtype.name, np.asarray(value).shape
                fits = len(shape) == len(sizes) and all(s in (None, d) for s, d in zip(sizes, shape))
                if ELEMENTS.get(kind) != element or not fits:
                    failures += 1
                    print(f"{case.name}: expected {kind} {list(shape)}, got {element} {sizes}")
    print(f"imported {imported}, refused {refused}, failures {failures}")
    return 1 if failures or imported == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
