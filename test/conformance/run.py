#!/usr/bin/env python3
# Part of the LLM compiler, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs ONNX's own operator cases through the generic path.

usage: run.py RUNNER [--filter REGEX] [--variants static,dynamic,constant]
              [--subset] [--jobs N] [--mcpu NAME] [--keep DIR]

Each case of onnx.backend.test.case.node, and each one of ort_cases.py (operators
of com.microsoft, with onnxruntime as the oracle), runs three times: as it is;
with every dimension of every input a symbol; with its inputs as initializers.
known.py lists what is not supported, and why: a listed case must end in an error
of the importer, and one that does not is a failure, as is an entry that no case
matches. Ends in a table and in "N passed, M failed, K not supported"; exit code
1 if any failed.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import known  # noqa: E402
import tensors  # noqa: E402

VARIANTS = ("static", "dynamic", "constant")
Case = collections.namedtuple("Case", "name model inputs outputs rtol atol")


def node_cases():
    """ONNX's cases of one node each; generated, nothing is fetched."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = node.collect_testcases()
    for case in collected:
        for index, (inputs, outputs) in enumerate(case.data_sets):
            name = case.name + (f".{index}" if index else "")
            yield Case(name, case.model, inputs, outputs, case.rtol, case.atol)


def operators(graph):
    """The operators of a graph and its subgraphs, with their domains."""
    for node in graph.node:
        yield (node.domain + "." if node.domain else "") + node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators(attribute.g)


def is_tensor(info):
    """A tensor of a type that crosses the boundary (no strings, no complex)."""
    return (
        info.type.WhichOneof("value") == "tensor_type"
        and info.type.tensor_type.elem_type in tensors.CODES
    )


def with_symbols(model):
    """Every dimension of every input becomes a symbol of its own; what is said
    about results is forgotten. Lists of sizes and axes keep their length: it
    is the rank of the result."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    changed = False
    for i, info in enumerate(model.graph.input):
        tensor = info.type.tensor_type
        rank = len(tensor.shape.dim)
        if i and tensor.elem_type == TensorProto.INT64 and len(tensor.shape.dim) == 1:
            continue
        for j, dim in enumerate(tensor.shape.dim):
            if known.stays_static(model.graph.node[0].op_type, i, j, rank):
                continue
            dim.Clear()
            dim.dim_param = f"d{i}_{j}"
            changed = True
    for info in model.graph.output:
        for j, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.Clear()
            dim.dim_param = f"r{j}_{info.name}"
    del model.graph.value_info[:]
    return model if changed else None


def with_constant_axes(model, protos):
    """The importer takes axes only as constants (the rank of the result hangs
    on them): they become initializers in all variants."""
    if model.graph.node[0].op_type == "Slice":
        return model, protos
    fixed = [info.name in ("axes", "axis") for info in model.graph.input]
    if not any(fixed):
        return model, protos
    model = onnx.ModelProto.FromString(model.SerializeToString())
    infos = list(model.graph.input)
    del model.graph.input[:]
    given = []
    for info, proto, constant in zip(infos, protos, fixed):
        if constant:
            initializer = model.graph.initializer.add()
            initializer.CopyFrom(proto)
            initializer.name = info.name
        else:
            model.graph.input.append(info)
            given.append(proto)
    return model, given


def with_constants(model, protos):
    """Inputs become initializers, all but the first where there are several:
    a graph of constants alone would be folded away."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    keep = 1 if len(model.graph.input) > 1 else 0
    names = [info.name for info in model.graph.input]
    for name, proto in list(zip(names, protos))[keep:]:
        proto = TensorProto.FromString(proto.SerializeToString())
        proto.name = name
        model.graph.initializer.append(proto)
    kept = list(model.graph.input)[:keep]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model, keep


def differs(name, got, got_type, want, info, rtol, atol):
    """What is wrong with an output, or None."""
    want_type = info.type.tensor_type.elem_type
    if got_type != want_type:
        return f"element type {got_type}, not {want_type}"
    if isinstance(want, TensorProto):
        want = numpy_helper.to_array(want)
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if want.dtype != got.dtype and want.dtype.itemsize == got.dtype.itemsize:
        want = want.view(got.dtype)
    if got.dtype.kind in "biu":
        if not np.array_equal(got, want):
            return f"{np.count_nonzero(got != want)} of {want.size} differ"
        return None
    a, b = got.astype(np.float64), want.astype(np.float64)
    if got.dtype.itemsize <= 1:
        rtol = atol = 0  # A code of 8 bits or fewer is right or wrong.
    # The reference rounds every step to 16 bits; we round an operator once. The
    # two may be neighbours. Over the steps of an attention the reference is up
    # to 1.7 units off the exact result (test_attention_4d_causal_padded_kv_bf16,
    # test_attention_4d_causal_fp16); ours is the nearest number, or 1.1 units off
    # where the case spells the steps out. There they may be two units apart.
    units = 2 if name.startswith("test_attention_") else 1
    if got_type == TensorProto.BFLOAT16:
        rtol = max(rtol, units * 2.0**-7)
    elif got_type == TensorProto.FLOAT16:
        rtol = max(rtol, units * 2.0**-10)
    if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        with np.errstate(invalid="ignore"):
            error = np.nanmax(np.abs(a - b)) if a.size else 0
        return f"largest difference {error:.3g}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("--filter", default="")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--subset", action="store_true")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--mcpu", default="x86-64-v3")
    parser.add_argument("--keep")
    options = parser.parse_args()
    variants = options.variants.split(",")

    temporary = None
    root = options.keep
    if not root:
        temporary = tempfile.TemporaryDirectory()
        root = temporary.name
    os.makedirs(root, exist_ok=True)

    cases = list(node_cases())
    try:
        import ort_cases

        cases += [Case(*case) for case in ort_cases.cases()]
    except ImportError as error:
        print(f"without the cases of com.microsoft: {error}", file=sys.stderr)
    if options.filter:
        cases = [c for c in cases if re.search(options.filter, c.name)]
    if options.subset:
        cases = [c for c in cases if c.name in known.SUBSET]

    counts = collections.Counter()
    table = collections.defaultdict(collections.Counter)
    failures, jobs = [], []

    def record(case, variant, status, message=""):
        counts[status] += 1
        operator = case.model.graph.node[0].op_type
        table[operator][status] += 1
        if status == "failed":
            failures.append(f"{case.name} [{variant}]: {message}")

    def refused(case, variant, message):
        """A case that does not even compile, for want of an operator or type."""
        if expected(case, variant):
            record(case, variant, "not supported")
        else:
            record(case, variant, "failed", message)

    unsupported = known.Unsupported()

    def expected(case, variant):
        return unsupported.reason(case.name, set(operators(case.model.graph)), variant)

    for case in cases:
        infos = list(case.model.graph.input) + list(case.model.graph.output)
        if not all(is_tensor(info) for info in infos):
            refused(case, "", "an input or output is no tensor of numbers")
            continue
        try:
            protos = [
                tensors.from_value(value, info.type.tensor_type.elem_type)
                for value, info in zip(case.inputs, case.model.graph.input)
            ]
        except TypeError as error:
            refused(case, "", str(error))
            continue
        fixed, protos = with_constant_axes(case.model, protos)
        for variant in variants:
            model, given = fixed, protos
            if variant == "dynamic":
                model = with_symbols(model)
                if model is None:
                    continue
            elif variant == "constant":
                if not protos:
                    continue
                model, keep = with_constants(model, protos)
                given = protos[:keep]
            stem = os.path.join(root, f"{len(jobs)}")
            with open(stem + ".onnx", "wb") as file:
                file.write(model.SerializeToString())
            tensors.write(stem + ".in", given)
            jobs.append((case, variant, stem))

    listing = os.path.join(root, "list")
    with open(listing, "w") as file:
        for _, _, stem in jobs:
            file.write(f"{stem}.onnx\t{stem}.in\t{stem}.out\n")
    run = subprocess.run(
        [options.runner, listing, options.jobs, options.mcpu], stdout=subprocess.PIPE, text=True
    )
    said = {}
    for line in run.stdout.splitlines():
        index, status, message = (line.split("\t", 2) + [""])[:3]
        said[int(index)] = (status, message)
    for index, (case, variant, stem) in enumerate(jobs):
        status, message = said.get(index, ("crash", "no result"))
        if status == "import":
            refused(case, variant, f"import: {message}")
            continue
        if expected(case, variant):
            record(case, variant, "failed", f"known.py lists it, but it ends in {status}")
            continue
        if status != "ok":
            record(case, variant, "failed", f"{status}: {message}")
            continue
        got = tensors.read(stem + ".out")
        problem = None
        for i, (want, info) in enumerate(zip(case.outputs, case.model.graph.output)):
            problem = differs(case.name, *got[i], want, info, case.rtol, case.atol)
            if problem:
                problem = f"output {i}: {problem}"
                break
        record(case, variant, "failed" if problem else "passed", problem or "")

    if not options.filter and not options.subset and len(variants) == len(VARIANTS):
        for entry in unsupported.unused():
            counts["failed"] += 1
            failures.append(f"known.py: no case matches '{entry}'")

    columns = ["passed", "failed", "not supported"]
    print(f"{'operator':32}" + "".join(f"{c:>15}" for c in columns))
    for operator in sorted(table):
        row = table[operator]
        if options.subset or row["passed"] or row["failed"]:
            print(f"{operator:32}" + "".join(f"{row[c]:15}" for c in columns))
    missing = sorted(o for o, row in table.items() if set(row) == {"not supported"})
    if missing and not options.subset:
        print("not supported at all: " + " ".join(missing))
    for line in failures:
        print("FAIL " + line)
    print(
        f"{counts['passed']} passed, {counts['failed']} failed, "
        f"{counts['not supported']} not supported"
    )
    if run.returncode != 0 or not counts["passed"]:
        return 1
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
