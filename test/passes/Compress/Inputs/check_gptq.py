"""Checks --llm-quantize-weights=method=gptq against optimal brain quantization.

    check_gptq.py LLM_OPT DIR

The oracle goes through the inputs one by one, in double: after each one the error
of its code is spread over the inputs that are left by the inverse of their own
Gram matrix, computed anew (Frantar and Alistarh, 2022), in place of the Cholesky
factor and the blocks of the pass. Scales have to agree to 1e-5, codes wherever the
oracle's weight is not at a tie.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from check_rtn import read_safetensors, unpack


def write_safetensors(path, tensors):
    entries, offset, data = {}, 0, b""
    for name, array in tensors.items():
        raw = array.tobytes()
        entries[name] = {
            "dtype": {"float32": "F32", "float64": "F64"}[array.dtype.name],
            "shape": array.shape,
            "data_offsets": [offset, offset + len(raw)],
        }
        offset += len(raw)
        data += raw
    header = json.dumps(entries).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


def run(tool, directory, w, gram, options, method="gptq"):
    n, k = w.shape
    write_safetensors(directory / "stats.safetensors", {"w.gram": gram})
    shape = f"tensor<{n}x{k}xf32>"
    module, store = directory / "w.mlir", directory / "store"
    module.write_text(
        f'module attributes {{llm.store = "{store}"}} {{\n'
        f'llm.weight @w : {shape} = #llm.dense<#llm.component<"data", {shape}, '
        f'dense<"0x{w.tobytes().hex()}"> : {shape}>>\n'
        f"func.func @f(%x: tensor<?x{k}xf32>) -> tensor<?x{n}xf32> {{\n"
        f"  %w = llm.get_weight @w : {shape}\n"
        f"  %y = llm.linear %x, %w : (tensor<?x{k}xf32>, {shape}) -> tensor<?x{n}xf32>\n"
        f"  return %y : tensor<?x{n}xf32>\n}}\n}}\n"
    )
    for old in store.glob("*"):
        old.unlink()
    subprocess.run(
        [
            tool,
            module,
            f"--llm-quantize-weights=method={method} statistics={directory}/stats.safetensors {options}",
            "-o",
            directory / "out.mlir",
        ],
        check=True,
    )
    (file,) = store.glob("*.safetensors")
    return read_safetensors(file)


def grid_of(x, bits, symmetric, half):
    """Scales and zero points of the rows of x, a group each, as rtn chooses them."""
    if symmetric:
        index = np.abs(x).argmax(axis=1)
        extreme = x[np.arange(len(x)), index]
        scale = extreme / -(2.0 ** (bits - 1))
        zero = np.full(len(x), 2.0 ** (bits - 1))
    else:
        low, high = np.minimum(x.min(axis=1), 0), np.maximum(x.max(axis=1), 0)
        scale = (high - low) / (2**bits - 1)
        zero = np.clip(np.rint(np.divide(-low, scale, out=np.zeros_like(low), where=scale > 0)), 0, 2**bits - 1)
    return scale.astype(np.float32).astype(np.float16 if half else np.float32).astype(np.float64), zero


def oracle(w, gram, bits, size, symmetric, damping, act_order, half, given=None):
    n, k = w.shape
    w = w.astype(np.float64).copy()
    gram = gram.astype(np.float64).copy()
    dead = np.diag(gram) == 0
    mean = np.diag(gram).mean() or 1
    gram[np.diag_indices(k)] += np.where(dead, mean, damping * mean)
    w[:, dead] = 0
    order = np.lexsort((np.arange(k), -np.where(dead, 0, np.diag(gram)))) if act_order else np.arange(k)
    groups = -(-k // size)
    scales, zeros = np.zeros((n, groups)), np.zeros((n, groups))

    def choose(g):
        part = np.zeros((n, size))
        part[:, : min(size, k - g * size)] = w[:, g * size : (g + 1) * size]
        scales[:, g], zeros[:, g] = grid_of(part, bits, symmetric, half)

    if given is not None:
        scales, zeros = given, np.full((n, groups), 2.0 ** (bits - 1))
    elif act_order:
        for g in range(groups):
            choose(g)
    codes, margin = np.zeros((n, k)), np.zeros((n, k))
    left = list(order)
    for j in order:
        g = j // size
        if not act_order and j % size == 0 and given is None:
            choose(g)
        scale, zero = scales[:, g], zeros[:, g]
        quotient = np.divide(w[:, j], scale, out=np.zeros(n), where=scale != 0)
        codes[:, j] = np.clip(np.rint(quotient), -zero, 2**bits - 1 - zero) + zero
        margin[:, j] = np.abs(np.abs(quotient - np.floor(quotient)) - 0.5)
        inverse = np.linalg.inv(gram[np.ix_(left, left)])
        at = left.index(j)
        error = (w[:, j] - (codes[:, j] - zero) * scale) / inverse[at, at]
        w[:, left] -= np.outer(error, inverse[at])
        left.remove(j)
    return codes, scales, zeros, margin


def loss(w, x, codes, scales, zeros, size):
    k = w.shape[1]
    value = (codes - np.repeat(zeros, size, axis=1)[:, :k]) * np.repeat(scales, size, axis=1)[:, :k]
    return np.square(x @ (value - w).T).sum()


def main():
    tool, directory = sys.argv[1], Path(sys.argv[2])
    generator = np.random.Generator(np.random.PCG64(7))
    cases, ratios = 0, []
    shapes = ((1, 1, 3), (3, 40, 200), (33, 64, 500), (5, 150, 60), (2, 210, 600))
    kinds = list(itertools.product((2, 4, 8), (16, 32, 128, 208), (True, False), (True, False)))
    for index, (n, k, tokens) in enumerate(shapes):
        # Every kind for some shape; all of them where it is cheap.
        for bits, size, symmetric, act_order in kinds if k < 100 else kinds[index % 4 :: 4]:
            w = (generator.standard_normal((n, k)) * 0.02).astype(np.float32)
            # Correlated inputs of unlike size, some of them always zero.
            x = generator.standard_normal((tokens, k)) @ (np.eye(k) + 0.3 * generator.standard_normal((k, k)))
            x *= np.exp(generator.standard_normal(k))
            x[:, generator.random(k) < 0.1] = 0
            gram = (x.T @ x / tokens).astype(np.float32 if (k + bits) % 2 else np.float64)
            damping = 0.01 if tokens > k else 0.1
            options = (
                f"bits={bits} group-size={size} symmetric={str(symmetric).lower()} damping={damping} "
                f"act-order={str(act_order).lower()}"
            )
            parts = run(tool, directory, w, gram, options)
            half = parts["scales"].dtype == np.float16
            # The pass mirrors the upper triangle.
            upper = np.triu(gram)
            codes, scales, zeros, margin = oracle(
                w, upper + np.triu(upper, 1).T, bits, size, symmetric, damping, act_order, half
            )
            groups = scales.shape[1]
            got = unpack(parts["data"], bits, groups * size).reshape(n, -1)
            got_zeros = zeros if symmetric else unpack(parts["zeros"], bits, groups)
            got_scales = parts["scales"].astype(np.float64)
            assert (np.abs(got_scales - scales) <= 1e-5 * np.abs(scales)).all(), options
            assert (got_zeros == zeros).all(), options
            # At a tie a code may go either way, and with it what follows in its row.
            clear = margin.min(axis=1) > 1e-6
            assert (got[clear, :k] == codes[clear]).all(), options
            assert (got[:, k:] == np.repeat(got_zeros, size, axis=1)[:, k:]).all()
            # What it is for: less is lost on the inputs than by rounding alone.
            if k >= 40 and bits < 8:
                plain = run(tool, directory, w, gram, options, "rtn")
                plain_zeros = zeros if symmetric else unpack(plain["zeros"], bits, groups)
                plain_codes = unpack(plain["data"], bits, groups * size).reshape(n, -1)[:, :k]
                rounded = loss(w, x, plain_codes, plain["scales"].astype(np.float64), plain_zeros, size)
                ratios.append(loss(w, x, got[:, :k], got_scales, got_zeros, size) / rounded)
            cases += 1
    # Groups that factors split: with act-order the scales are those of rounding,
    # without it they are of what errors have made of a whole group.
    for n, k, group, part, act_order in ((33, 64, 32, 8, True), (5, 150, 128, 32, True), (3, 140, 64, 32, False)):
        w = (generator.standard_normal((n, k)) * 0.02).astype(np.float32)
        x = generator.standard_normal((600, k)) @ (np.eye(k) + 0.3 * generator.standard_normal((k, k)))
        gram = np.triu(x.T @ x / 600)
        gram += np.triu(gram, 1).T
        options = f"bits=4 group-size={group} factor-group={part} act-order={str(act_order).lower()}"
        parts, plain = (run(tool, directory, w, gram, options, method) for method in ("gptq", "rtn"))
        each = group // part
        first = 1 if not act_order else len(w[0])
        for name in ("scales", "factors"):
            assert (parts[name][:, :first] == plain[name][:, :first]).all()
        steps = parts["factors"] * np.repeat(parts["scales"].astype(np.float64), each, axis=1)
        steps = steps[:, : -(-k // part)]
        codes, _, zeros, margin = oracle(w, gram, 4, part, True, 0.01, act_order, False, steps)
        got = unpack(parts["data"], 4, parts["data"].shape[1] * 2)[:, :k]
        clear = margin.min(axis=1) > 1e-6
        assert clear.any() and (got[clear] == codes[clear]).all(), options
        cases += 1
    assert np.median(ratios) < 0.7 and np.max(ratios) < 1.1, sorted(ratios)
    print(f"{cases} matrices agree; {np.median(ratios):.2f} of the loss of rounding")


if __name__ == "__main__":
    main()
