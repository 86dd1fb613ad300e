#!/usr/bin/env python3
"""Measures generation with and without speculation, interleaved, in one artifact.

    benchmarks/speculation.py [--model DIR] [--recipe NAME] [--speculate OPTIONS]
                              [--rounds 5] [--tokens 128] [--threads N] [--batch 1,8]
                              [--json FILE]

Compiles the model (SmolLM2-135M-Instruct, which `make demo` exports) with
--speculate, and answers two sets of prompts: those that ask for what stands in them
(paragraphs to repeat, a program to change a little), and those that
ask for free prose, sampled so that it does not repeat itself. A round answers each set
twice at each batch size, without drafts (--max-draft 0) and with them; which comes
first alternates. The answers must be equal. The table gives, by set and batch size:
how many drafted tokens were accepted; the tokens that a step of a sequence gave; and
the time of the plain loop over that of the speculative one, the median over rounds
with the lowest and highest. The time is that of all tokens after the first.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PARAGRAPHS = [
    "The harbour was quiet in the early morning. Three fishing boats lay at the wooden pier, and a "
    "grey cat slept on a pile of nets. The keeper of the lighthouse walked slowly along the wall, "
    "counted the boats, and wrote the number into a small blue book.",
    "Every release is built on two machines. First the sources are fetched and their hashes are "
    "compared with the list. Then the tools are built, the tests are run, and the results of both "
    "machines are compared byte by byte. Only equal results are published.",
    "Granite is a coarse rock made of quartz, feldspar and mica. It forms when magma cools slowly "
    "deep under the surface. Basalt has the same origin but cools quickly, so that its crystals "
    "stay too small to be seen without a lens.",
    "Anna met the doctor at the station on Tuesday. She gave him the letter, and he read it twice "
    "before he said a word. Then he folded it, put it into his coat, and asked her to take the "
    "next train to the north, because her brother was waiting there.",
    "Put two cups of flour, one spoon of salt and one spoon of yeast into a large bowl. Add one "
    "cup of warm water and stir until the dough holds together. Cover the bowl with a cloth and "
    "let it rest for two hours. Then heat the oven and bake the bread for forty minutes.",
]
CODE = """def total_price(items, discount):
    total = 0
    for item in items:
        price = item["price"] * item["count"]
        total = total + price
    if discount is not None:
        total = total * (1 - discount)
    return total
"""
COPY = [f"Repeat this text word for word, and nothing else:\n\n{text}" for text in PARAGRAPHS] + [
    f"Write this program again, with a comment before the function:\n\n```python\n{CODE}```"
]
PROSE = [
    "Write a story about a child who finds a door in a tree.",
    "Describe a market in a town by the sea.",
    "Why do people like music?",
    "Write a letter to a friend who has moved away.",
    "What makes a good teacher?",
    "Tell me about a winter in the mountains.",
    "Explain to a child how rain comes about.",
    "Write about the first day at a new job.",
]


def requests(name, tokens):
    lines = []
    for i, prompt in enumerate(COPY if name == "copy" else PROSE):
        line = {"prompt": prompt, "max_tokens": tokens}
        if name == "prose":
            line |= {"temperature": 0.8, "top_p": 0.95, "seed": i}
        lines.append(json.dumps(line))
    return "\n".join(lines) + "\n"


def answer(args, artifact, path, batch, drafts):
    command = [args.build / "bin/llm-run", "generate", artifact, "--chat", "--prompts", path, "--json"]
    command += ["--max-sequences", str(batch)]
    command += [] if drafts else ["--max-draft", "0"]
    command += ["--threads", str(args.threads)] if args.threads else []
    text = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda line: line["index"])


def seconds(answers):
    """Of all tokens after the first; sequences of a batch count their own."""
    return sum((len(one["tokens"]) - 1) / one["decode_tokens_per_s"] for one in answers if len(one["tokens"]) > 1)


def measure(args, artifact, name, batch, directory):
    path = Path(directory) / f"{name}.jsonl"
    path.write_text(requests(name, args.tokens))
    ratios, rates = [], []
    for turn in range(args.rounds):
        found = {}
        for drafts in [False, True] if turn % 2 == 0 else [True, False]:
            found[drafts] = answer(args, artifact, path, batch, drafts)
        plain, fast = found[False], found[True]
        if [one["tokens"] for one in plain] != [one["tokens"] for one in fast]:
            sys.exit(f"{name}, batch {batch}: speculation changed an answer")
        ratios.append(seconds(plain) / seconds(fast))
        rates.append(sum(len(one["tokens"]) - 1 for one in fast) / seconds(fast))
    tokens = sum(len(one["tokens"]) - 1 for one in fast)
    drafted, accepted = (sum(one[key] for one in fast) for key in ["drafted", "accepted"])
    return {
        "prompts": name,
        "batch": batch,
        "tokens": tokens,
        "drafted": drafted,
        "accepted": accepted,
        # A step gives one token, and those that were accepted.
        "tokens_per_step": tokens / (tokens - accepted),
        "speedup": statistics.median(ratios),
        "speedup_low": min(ratios),
        "speedup_high": max(ratios),
        "tokens_per_s": statistics.median(rates),
    }


def main():
    parser = argparse.ArgumentParser(description="Measures what speculation gains and costs.")
    parser.add_argument("--build", type=Path, default=ROOT / "build", metavar="DIR")
    parser.add_argument("--model", type=Path, metavar="DIR")
    parser.add_argument("--recipe", default="none")
    parser.add_argument("--speculate", default="lookup=3,tokens=4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--batch", default="1")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    args.model = args.model or args.build / "models/smollm2"
    results = []
    with tempfile.TemporaryDirectory() as directory:
        artifact = Path(directory) / "model.llmx"
        command = [args.build / "bin/llm-compile", args.model, "-o", artifact]
        command += [f"--recipe={args.recipe}", f"--speculate={args.speculate}"]
        subprocess.run([str(part) for part in command], check=True)
        print(f"recipe {args.recipe}, {args.speculate}, medians of {args.rounds} rounds")
        print("| prompts | batch | accepted | tokens a step | over the plain loop |\n|---|---|---|---|---|")
        for batch in map(int, args.batch.split(",")):
            for name in ["copy", "prose"]:
                one = measure(args, artifact, name, batch, directory)
                results.append(one)
                print(
                    f"| {name} | {batch} | {one['accepted']} of {one['drafted']} | {one['tokens_per_step']:.2f} "
                    f"| {one['speedup']:.2f} × ({one['speedup_low']:.2f}–{one['speedup_high']:.2f}) |",
                    flush=True,
                )
    if args.json:
        args.json.write_text(json.dumps({"recipe": args.recipe, "speculate": args.speculate, "results": results}, indent=1) + "\n")


main()
