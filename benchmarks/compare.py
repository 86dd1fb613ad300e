#!/usr/bin/env python3
"""Measures this compiler and its peers on the same models, interleaved.

    benchmarks/compare.py [--models smollm2,tinyllama] [--rounds 5] [--threads 2]
                          [--engines ours,llama.cpp,onnxruntime-genai,openvino-genai]
                          [--output benchmarks/results/NAME.json]

Sets up the peers (benchmarks/peers/setup.sh) and makes the models in
build/peers, once: SmolLM2-135M-Instruct, which `make demo` exports, and a random
model of TinyLlama-1.1B's shape. Each has 4-bit weights: ours is the w4a8 recipe,
llama.cpp's is Q4_0 throughout (the type that it repacks for speed), that of
onnxruntime-genai comes from its own model builder (int4), OpenVINO GenAI reads
llama.cpp's file.

A round runs every engine and case once, one process at a time. The table gives
the medians over rounds, their lowest and highest, and our median over the
peer's. The limits of the machine are measured in each round, too
(kernels-bench --limits): the rate at which memory is read, and the most
multiply-adds a second, by the time of the processor, which others on the machine
do not lengthen. What we reach of them is what our kernels have to compute and to
move at least (llm-run bench --profile) over the time of a phase by the clock.

For a model with a real vocabulary, a whole process that generates one token after
a prompt of 16 is timed, too, from its start to its end, files in the page cache.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "build/peers"
PYTHON = PEERS / "venv/bin/python"
LLAMA = PEERS / "llama.cpp/bin"
# 16 tokens of SmolLM2.
PROMPT = "The quick brown fox jumps over the lazy dog and then it runs away from home"
# name: (tokens of each prompt, generated tokens, sequences)
CASES = {"prefill 512, decode": (512, 64, 1), "4 sequences": (32, 32, 4), "16 sequences": (32, 32, 16)}
TOKENIZED = ["smollm2"]
ENGINES = ["ours", "llama.cpp", "onnxruntime-genai", "openvino-genai"]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"compare.py: error: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


# Models -----------------------------------------------------------------------


def once(target, make):
    """Makes `target` aside and moves it, where it is not there yet."""
    if not target.exists():
        print(f"making {target.relative_to(ROOT)}", flush=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        make(part)
        part.rename(target)
    return target


def source_gguf(model):
    if model == "smollm2":
        return Path(run(ROOT / "models/fetch_smollm2.sh", ROOT / "build/venv").strip())
    return once(PEERS / model / "f16.gguf", lambda path: run(PYTHON, ROOT / "benchmarks/peers/random_llama.py", path))


def prepare(model, engine):
    """The file or directory that `engine` runs."""
    directory, source = PEERS / model, source_gguf(model)
    directory.mkdir(parents=True, exist_ok=True)
    onnx = ROOT / "build/models/smollm2"
    if model != "smollm2":
        onnx = once(directory / "onnx", lambda path: run(ROOT / "build/venv/bin/python",
                                                         ROOT / "models/export_gguf.py", source, path))
    if engine == "ours":
        # Always anew: it is what is measured.
        run(ROOT / "build/bin/llm-compile", onnx, "-o", directory / "w4a8.llmx", "--recipe=w4a8")
        return directory / "w4a8.llmx"
    if engine in ("llama.cpp", "openvino-genai"):
        return once(directory / "q4_0.gguf", lambda path: run(LLAMA / "llama-quantize", "--allow-requantize", "--pure",
                                                              source, path, "Q4_0"))
    hf = once(directory / "hf", lambda path: run(ROOT / "build/venv/bin/python",
                                                 ROOT / "benchmarks/peers/hf_directory.py", source, path))
    return once(directory / "genai", lambda path: run(PYTHON, "-m", "onnxruntime_genai.models.builder", "-i", hf, "-o",
                                                      path, "-p", "int4", "-e", "cpu", "-c", directory / "cache",
                                                      "--extra_options", "int4_accuracy_level=4"))


# Measuring --------------------------------------------------------------------


def measure(engine, model, case, threads):
    """{"prefill": tokens/s, "decode": tokens/s}"""
    prompt, gen, batch = CASES[case]
    if engine == "ours":
        line = json.loads(run(ROOT / "build/bin/llm-run", "bench", model, "--prompt-tokens", prompt, "--gen-tokens", gen,
                              "--batch", batch, "--threads", threads, "--json"))
        line = line[0] if isinstance(line, list) else line
        return {"prefill": line["prefill_tokens_per_s"], "decode": line["decode_tokens_per_s"]}
    if engine == "llama.cpp":
        text = run(LLAMA / "llama-batched-bench", "-m", model, "-c", batch * (prompt + gen) + 64, "-b", 2048, "-ub", 512,
                   "-npp", prompt, "-ntg", gen, "-npl", batch, "-t", threads, "-tb", threads, "--output-format", "jsonl")
        line = next(json.loads(part) for part in text.splitlines() if part.startswith("{"))
        return {"prefill": line["speed_pp"], "decode": line["speed_tg"]}
    return json.loads(run(PYTHON, ROOT / "benchmarks/peers/run_peer.py", engine, model, prompt, gen, batch,
                          threads).splitlines()[-1])


def cold_start(engine, model, threads):
    """Seconds of a process that generates one token after PROMPT; None where there is no such program."""
    if engine == "ours":
        command = [ROOT / "build/bin/llm-run", "generate", model, "--prompt", PROMPT, "--max-tokens", 1,
                   "--threads", threads]
    elif engine == "llama.cpp":
        command = [LLAMA / "llama-completion", "-m", model, "-p", PROMPT, "-n", 1, "-t", threads, "-c", 64,
                   "-fit", "off", "-no-cnv", "--no-warmup"]
    else:
        return None
    start = time.perf_counter()
    run(*command, stdin=subprocess.DEVNULL)
    return time.perf_counter() - start


def costs(model, threads):
    """Operations of the linear layers for a token of the prompt; bytes that kernels move for a generated one."""
    prompt, gen, batch = CASES["prefill 512, decode"]
    line = json.loads(run(ROOT / "build/bin/llm-run", "bench", model, "--prompt-tokens", prompt, "--gen-tokens", gen,
                          "--batch", batch, "--threads", threads, "--profile", "--json"))
    operations = sum(entry["operations"] for entry in line["profile"]
                     if entry["phase"] == "prefill" and entry["family"] == "linear")
    read = sum(entry["bytes"] for entry in line["profile"] if entry["phase"] == "decode")
    return operations / prompt, read / gen


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def summary(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values), "all": values}


def main():
    parser = argparse.ArgumentParser(description="Measures this compiler and its peers, interleaved.")
    parser.add_argument("--models", default="smollm2,tinyllama")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count()))
    parser.add_argument("--output", type=Path, help="JSON; a table with the suffix .md goes beside it")
    args = parser.parse_args()
    engines, models = args.engines.split(","), args.models.split(",")
    run(ROOT / "benchmarks/peers/setup.sh", PEERS)
    run("ninja", "-C", ROOT / "build", "kernels-bench", "llm-run", "llm-compile")

    results, limits, starts, shares = {}, {}, {}, {}
    files = {(model, engine): prepare(model, engine) for model in models for engine in engines}
    needs = {model: costs(file, args.threads) for (model, engine), file in files.items() if engine == "ours"}
    for round in range(args.rounds):
        limit = json.loads(run(ROOT / "build/bin/kernels-bench", "--limits", f"--threads={args.threads}"))
        for name, value in limit.items():
            limits.setdefault(name, []).append(value)
        for (model, engine), file in files.items():
            for case in CASES:
                found = measure(engine, file, case, args.threads)
                for phase, value in found.items():
                    results.setdefault(model, {}).setdefault(case, {}).setdefault(phase, {}).setdefault(
                        engine, []).append(value)
                if engine == "ours" and case == "prefill 512, decode":
                    operations, read = needs[model]
                    share = shares.setdefault(model, {})
                    for name, rate, most in (
                            ("prefill: operations of linear layers, of int8", found["prefill"] * operations, "int8"),
                            ("decode: bytes moved, of reading memory", found["decode"] * read, "read")):
                        if limit[most]:
                            share.setdefault(name, []).append(rate / limit[most])
            seconds = cold_start(engine, file, args.threads) if model in TOKENIZED else None
            if seconds:
                starts.setdefault(model, {}).setdefault(engine, []).append(seconds)
        print(f"round {round + 1} of {args.rounds} done", flush=True)

    report = {
        "date": time.strftime("%Y-%m-%d"), "commit": run("git", "rev-parse", "--short", "HEAD", cwd=ROOT).strip(),
        "processor": processor(), "threads": args.threads, "rounds": args.rounds,
        "limits": {name: summary(values) for name, values in limits.items()},
        "results": {m: {c: {p: {e: summary(v) for e, v in es.items()} for p, es in ps.items()} for c, ps in cs.items()}
                    for m, cs in results.items()},
        "shares": {m: {name: summary(v) for name, v in s.items()} for m, s in shares.items()},
        "cold_start_seconds": {m: {e: summary(v) for e, v in es.items()} for m, es in starts.items()},
    }
    table = markdown(report, engines)
    print(table)
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(report, indent=1) + "\n")
        args.output.with_suffix(".md").write_text(table + "\n")


def markdown(report, engines):
    limit = {name: value["median"] for name, value in report["limits"].items()}
    lines = [
        f"{report['processor']}, {report['threads']} threads, {report['date']}, commit {report['commit']}; medians of "
        f"{report['rounds']} interleaved rounds, lowest and highest in brackets; tokens/s. Read {limit['read'] / 1e9:.1f} "
        f"GB/s, f32 {limit['f32'] / 1e9:.0f}, int8 {limit['int8'] / 1e9:.0f}, bf16 {limit['bf16'] / 1e9:.0f} GOP/s.",
        "", "| model | case | phase | " + " | ".join(engines) + " |", "|---" * (3 + len(engines)) + "|",
    ]
    for model, cases in report["results"].items():
        for case, phases in cases.items():
            for phase, found in phases.items():
                row = []
                for engine in engines:
                    if engine not in found:
                        row.append("–")
                        continue
                    value = found[engine]
                    text = f"{value['median']:.0f} ({value['lowest']:.0f}–{value['highest']:.0f})"
                    if engine != "ours" and "ours" in found:
                        text += f", ours {found['ours']['median'] / value['median']:.2f} ×"
                    row.append(text)
                lines.append(f"| {model} | {case} | {phase} | " + " | ".join(row) + " |")

    def spread(value, scale):
        return f"{value['median'] * scale:.0f} ({value['lowest'] * scale:.0f}–{value['highest'] * scale:.0f})"

    for model, found in report["shares"].items():
        for name, value in found.items():
            lines += ["", f"{model}, ours, {name}: {spread(value, 100)} %."]
    for model, found in report["cold_start_seconds"].items():
        text = ", ".join(f"{engine} {spread(value, 1e3)} ms" for engine, value in found.items())
        lines += ["", f"{model}, a process that generates one token after 16: {text}."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
