#!/usr/bin/env python3
"""Compiles a model with each recipe, and measures perplexity, size and time.

    benchmarks/accuracy.py [--model DIR] [--text FILE] [--tokens 32768]
                           [--context 512] [--recipes none,bf16,…] [--json FILE]

Prints a table, and fails where a recipe exceeds its bound (BOUNDS below). What a
recipe is compared with is measured first where it is not asked for. A recipe may
be a file, or quantize=METHOD,… as llm-compile's --quantize takes it; these have no
bound. `RECIPE+kv=TYPE` is a recipe with another type of the cache. `make accuracy` runs it on SmolLM2-135M-Instruct, which `make demo` exports,
and the test text of wikitext-2.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = ROOT.parent / "shared/data/text/wikitext-2-raw.test.hfjoin.txt"
NAMES = "none,bf16,bf16+kv=int8,bf16+kv=fp8,w8a8,w4a16,w4a8"
# recipe: (what it is compared with, by how much perplexity may differ)
BOUNDS = {"bf16": ("none", 0.002), "bf16+kv=int8": ("bf16", 0.002), "bf16+kv=fp8": ("bf16", 0.01), "w8a8": ("none", 0.01), "w4a8": ("w4a16", 0.015)}


def measure(args, recipe):
    artifact = (args.output or args.build / "accuracy") / f"{Path(recipe).stem}.llmx"
    artifact.parent.mkdir(parents=True, exist_ok=True)
    name, _, cache = recipe.partition("+kv=")
    options = [f"--{name}" if name.startswith("quantize=") else f"--recipe={name}"]
    options += [f"--kv={cache}"] if cache else []
    start = time.monotonic()
    subprocess.run([args.build / "bin/llm-compile", args.model, "-o", artifact, *options], check=True)
    seconds = time.monotonic() - start
    command = [args.build / "bin/llm-run", "perplexity", artifact, "--file", args.text, "--json"]
    command += ["--context", str(args.context), "--max-tokens", str(args.tokens)]
    start = time.monotonic()
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {
        "recipe": recipe,
        "perplexity": found["perplexity"],
        "tokens": found["tokens"],
        "bytes": artifact.stat().st_size,
        "compile_seconds": round(seconds, 1),
        "perplexity_seconds": round(time.monotonic() - start, 1),
    }


def main():
    parser = argparse.ArgumentParser(description="Measures what the recipes cost and gain.")
    parser.add_argument("--build", type=Path, default=ROOT / "build", metavar="DIR")
    parser.add_argument("--output", type=Path, metavar="DIR", help="artifacts; else accuracy in the build")
    parser.add_argument("--model", type=Path, metavar="DIR")
    parser.add_argument("--text", type=Path, default=TEXT, metavar="FILE")
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--recipes", default=NAMES, help="separated by ','; by ';' where one has commas")
    parser.add_argument("--bound", type=float, help="for all recipes, in place of their own")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    args.model = args.model or args.build / "models/smollm2"
    for path, remedy in ((args.model, "run make demo"), (args.text, "give --text")):
        if not path.exists():
            sys.exit(f"accuracy.py: error: {path} is not there: {remedy}")

    wanted = [r for r in args.recipes.split(";" if ";" in args.recipes else ",") if r]
    for recipe in list(wanted):
        if recipe in BOUNDS and BOUNDS[recipe][0] not in wanted:
            wanted.insert(0, BOUNDS[recipe][0])
    results, failed = {}, []
    print(f"{'recipe':<28} {'perplexity':>10} {'change':>9} {'MB':>7} {'compile':>8} {'run':>7}")
    for recipe in wanted:
        result = results[recipe] = measure(args, recipe)
        base = results.get("none")
        change = f"{100 * (result['perplexity'] / base['perplexity'] - 1):+.2f} %" if base else ""
        print(f"{recipe:<28} {result['perplexity']:>10.4f} {change:>9} {result['bytes'] / 1e6:>7.1f} "
              f"{result['compile_seconds']:>6.1f} s {result['perplexity_seconds']:>5.0f} s", flush=True)
    for recipe, (base, bound) in BOUNDS.items():
        if recipe in results:
            bound = args.bound if args.bound is not None else bound
            change = results[recipe]["perplexity"] / results[base]["perplexity"] - 1
            if not abs(change) <= bound:
                failed.append(f"{recipe} is {100 * change:+.2f} % from {base}, allowed are {100 * bound:.1f} %")
    if args.json:
        args.json.write_text(json.dumps(list(results.values()), indent=1) + "\n")
    for line in failed:
        print(f"accuracy.py: error: {line}", file=sys.stderr)
    sys.exit(1 if failed else 0)


main()
