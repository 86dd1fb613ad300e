"""Checks --llm-quantize-weights against sums in double over odd shapes.

    check_rtn.py LLM_OPT DIR

Writes matrices with ordinary, zero, huge, denormal and mixed rows into DIR, runs
the pass over each with several options, reads the components from the store that
it leaves (safetensors), and checks each code and scale by what defines it:
  - the scale is that of the range, as f16 or f32 rounds it (without search);
  - a code is the integer nearest to x / scale, ties apart, within the codes;
  - f16 moves no element by more than an eighth of the row's largest step;
  - what fills the last group has the value 0.
With search the squared error is no larger than without. Where factors split the
groups, no scale of a group has multiples closer to those of its parts.
"""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

TYPES = {"U8": np.uint8, "I8": np.int8, "F16": np.float16, "F32": np.float32}


def read_safetensors(path):
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert (8 + length) % 64 == 0, length
    tensors, end = {}, 0
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        begin, stop = entry["data_offsets"]
        assert begin == end, "safetensors has no holes"
        end = stop
        data = np.frombuffer(raw[8 + length + begin : 8 + length + stop], TYPES[entry["dtype"]])
        tensors[name] = data.reshape(entry["shape"])
    assert 8 + length + end == len(raw)
    return tensors


def unpack(rows, bits, count):
    """Codes of `bits` bits, low bits first, `count` a row."""
    flat = np.unpackbits(rows, axis=1, bitorder="little").reshape(len(rows), -1, bits)
    return (flat << np.arange(bits, dtype=np.uint8)).sum(axis=2)[:, :count].astype(np.int64)


def matrix(generator, rows, columns):
    w = generator.standard_normal((rows, columns), dtype=np.float32)
    kinds = {1: 0, 2: 1e30, 3: 1e-42, 4: 1e-6, 5: 3e5}
    for row in range(rows):
        w[row] *= np.float32(kinds.get(row % 8, 0.02))
    if rows > 6:
        w[6, ::3] = 0
        w[6, : columns // 2] *= np.float32(1e-5)
    if rows > 7:
        w[7] = np.abs(w[7]) + np.float32(0.001)
    return w


def run(tool, directory, w, turned, options):
    stored = np.ascontiguousarray(w.T if turned else w)
    module, out = directory / "w.mlir", directory / "out.mlir"
    n, k = w.shape
    shape = f"tensor<{'x'.join(map(str, stored.shape))}xf32>"
    module.write_text(
        f'llm.weight @w : {shape} = #llm.dense<#llm.component<"data", {shape}, '
        f'dense<"0x{stored.tobytes().hex()}"> : {shape}>>\n'
        f"func.func @f(%x: tensor<?x{k}xf32>) -> tensor<?x{n}xf32> {{\n"
        f"  %w = llm.get_weight @w : {shape}\n"
        f"  %y = llm.linear %x, %w {'{transposed}' if turned else ''} : (tensor<?x{k}xf32>, {shape}) -> tensor<?x{n}xf32>\n"
        f"  return %y : tensor<?x{n}xf32>\n}}\n"
    )
    subprocess.run([tool, module, f"--llm-quantize-weights={options}", "-o", out], check=True)
    text = out.read_text()
    assert len(text) < 2000, "the weights are in the text"
    files = set(re.findall(r'"([^"]*\.safetensors)"', text))
    assert len(files) == 1, files
    return text, read_safetensors(Path(files.pop()))


def check(w, bits, group, symmetric, search, text, parts):
    n, k = w.shape
    size = -(-k // max(8, 32 // bits)) * max(8, 32 // bits) if group == "row" else group
    assert f"bits = {bits}, group_size = {size}," in text
    groups = -(-k // size)
    codes = unpack(parts["data"], bits, groups * size).reshape(n, groups, size)
    scales = parts["scales"].astype(np.float64)
    assert scales.shape == (n, groups)
    zeros = np.full((n, groups), 2 ** (bits - 1))
    if not symmetric:
        zeros = unpack(parts["zeros"], bits, groups)
    x = np.zeros((n, groups, size))
    x.reshape(n, -1)[:, :k] = w

    top = 2**bits - 1
    live = scales != 0
    quotient = np.divide(x, scales[..., None], out=np.zeros_like(x), where=live[..., None])
    wanted = np.clip(quotient + zeros[..., None], 0, top)
    off = np.abs(codes - wanted) - 0.5
    assert (off <= 1e-4)[live].all(), off[live].max()
    assert (codes == zeros[..., None])[~live].all()

    # Scales from the range, in double.
    index = np.abs(x).argmax(axis=2, keepdims=True)
    magnitude = np.take_along_axis(np.abs(x), index, 2)[..., 0]
    low, high = np.minimum(x.min(axis=2), 0), np.maximum(x.max(axis=2), 0)
    exact = magnitude / 2 ** (bits - 1) if symmetric else (high - low) / top
    half = parts["scales"].dtype == np.float16
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float16).astype(np.float64)
    moved = top * np.abs(rounded - exact)
    if not search:
        row = exact.max(axis=1, keepdims=True)
        may = (moved <= row / 8 * (1 + 1e-5)).all()
        must_not = (moved > row / 8 * (1 - 1e-5)).any()
        assert half == may or may == must_not, "f16 or f32"
        one = 2.0**-11 * 1.001 if half else 2.0**-22
        least = 2.0**-24 if half else 2.0**-149
        off = np.abs(np.abs(scales) - exact) - (exact * one + least * 0.51)
        assert (off <= 0).all(), (scales[off > 0], exact[off > 0], half)
        if symmetric:
            # The element that sets the scale gets the code 0.
            signed = np.take_along_axis(x, index, 2)[..., 0]
            unique = (np.abs(x) == magnitude[..., None]).sum(axis=2) == 1
            assert (np.sign(scales) == -np.sign(signed))[live & unique].all()
        else:
            ratio = np.divide(-low, exact, out=np.zeros_like(low), where=exact > 0)
            # A scale of a denormal row is itself a rounded one.
            slack = np.divide(2.0**-149 * ratio, exact, out=np.zeros_like(low), where=exact > 0)
            assert (np.abs(zeros - ratio) <= 0.5 + 1e-4 + slack).all()
    return ((codes - zeros[..., None]) * scales[..., None] - x), half


def units(most):
    """All scales of 6 bits behind the first one of which `most` is 7.5 to 15.5 times."""
    exponents = np.arange(-30, 33)
    every = np.ldexp(1 + np.arange(64)[None, :] / 64, exponents[:, None]).ravel()
    return every[(every * 15.5 >= most * (1 - 2.0**-6)) & (every * 7.5 < most)]


def check_factors(w, group, part, text, parts):
    n, k = w.shape
    assert f"bits = 4, group_size = {group}," in text and f"factor_group = {part}" in text
    groups, each = -(-k // group), group // part
    codes = unpack(parts["data"], 4, groups * group).reshape(n, groups * each, part)
    scales, factors = parts["scales"].astype(np.float64), parts["factors"].astype(np.int64)
    assert scales.shape == (n, groups) and factors.shape == (n, groups * each)
    assert (np.abs(factors) <= 15).all()
    mantissa, exponent = np.frexp(scales)
    assert (mantissa * 128 == np.rint(mantissa * 128)).all() and (scales >= 0).all()
    assert ((exponent > -30) & (exponent < 34))[scales > 0].all()
    x = np.zeros((n, groups * each, part))
    x.reshape(n, -1)[:, :k] = w
    index = np.abs(x).argmax(axis=2, keepdims=True)
    plain = np.take_along_axis(x, index, 2)[..., 0].astype(np.float32) / np.float32(-8)
    unique = (np.abs(x) == np.abs(np.take_along_axis(x, index, 2))).sum(axis=2) == 1
    assert (np.sign(factors) == np.sign(plain))[unique].all()
    magnitudes = np.abs(plain).astype(np.float64).reshape(n, groups, each)
    for row, g in np.ndindex(n, groups):
        wanted, unit = magnitudes[row, g], scales[row, g]
        got = np.abs(factors[row, g * each : (g + 1) * each])
        if not wanted.any():
            assert unit == 0 and not got.any()
            continue
        nearest = np.where(wanted > 0, np.clip(wanted / unit, 1, 15), 0)
        assert (np.abs(got - nearest) <= 0.5 + 1e-5).all()
        every = units(wanted.max())[:, None]
        tried = np.where(wanted > 0, np.clip(np.rint(wanted / every), 1, 15), 0) * every
        least = np.square(tried - wanted).sum(axis=1).min()
        assert np.square(got * unit - wanted).sum() <= least * (1 + 1e-4) + wanted.max() ** 2 * 1e-12
    step = factors * np.repeat(scales, each, axis=1)
    live = step != 0
    quotient = np.divide(x, step[..., None], out=np.zeros_like(x), where=live[..., None])
    off = np.abs(codes - np.clip(quotient + 8, 0, 15)) - 0.5
    assert (off <= 1e-4)[live].all(), off[live].max()
    assert (codes == 8)[~live].all()
    return (codes - 8) * step[..., None] - x


def main():
    tool, directory = sys.argv[1], Path(sys.argv[2])
    generator = np.random.Generator(np.random.PCG64(5))
    cases = wide = 0
    for n, k in ((1, 1), (3, 7), (8, 33), (9, 64), (33, 130), (70, 257)):
        w = matrix(generator, n, k)
        for bits, group, symmetric in itertools.product((2, 4, 8), (16, 32, 128, "row"), (True, False)):
            turned = (n + k + bits) % 2 == 1
            options = f"bits={bits} group-size={group} symmetric={str(symmetric).lower()}"
            text, parts = run(tool, directory, w, turned, options)
            error, half = check(w, bits, group, symmetric, 0, text, parts)
            cases, wide = cases + 1, wide + (not half)
            if symmetric and group == 32 and n == 33:
                # The same matrix without the rows that f16 cannot hold.
                tame = np.float32(0.02) * generator.standard_normal((n, k), dtype=np.float32)
                plain, half = check(tame, bits, group, True, 0, *run(tool, directory, tame, turned, options))
                assert half
                fitted, _ = check(tame, bits, group, True, 8, *run(tool, directory, tame, turned, options + " search=8"))
                assert (fitted**2).sum() < (plain**2).sum() * (0.95 if bits < 8 else 1), bits
                cases += 2
    for n, k, group, part in ((1, 1, 32, 8), (9, 64, 128, 32), (33, 576, 128, 32), (5, 77, 48, 16), (17, 300, 64, 32)):
        # The first row is an ordinary one, as is a row with a tiny half.
        w = matrix(generator, n, k)
        w = np.concatenate([w[row : row + 1] for row in range(n) if row % 8 in (0, 6, 7)])
        options = f"bits=4 group-size={group} factor-group={part}"
        error = check_factors(w, group, part, *run(tool, directory, w, (n + k) % 2 == 1, options))
        plain, half = check(w, 4, part, True, 0, *run(tool, directory, w, False, f"bits=4 group-size={part}"))
        assert half and (error**2).sum() < (plain**2).sum() * 1.15 + (w.astype(np.float64) ** 2).sum() * 1e-5
        # What no scale holds has scales in f32, of as few inputs as share a factor.
        for factor in (1e-9, 1e16):
            scaled = w * np.float32(factor)
            text, parts = run(tool, directory, scaled, False, options)
            _, half = check(scaled, 4, part, True, 1, text, parts)
            assert not half and "factors" not in parts
        cases, wide = cases + 4, wide + 2
    # Huge rows need scales in f32, but not all matrices have them.
    assert 0 < wide < cases
    print(f"{cases} matrices agree, {wide} with scales in f32")


if __name__ == "__main__":
    main()
