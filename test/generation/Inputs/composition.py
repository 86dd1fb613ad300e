"""Runs everything that changes how an artifact stores and computes together.

    composition.py MODEL DIRECTORY TABLE.md [--recipes NAME|FILE,...]
                   [--caches TYPE,...] [--calibration TEXT]

For each recipe and type of cache, the reference is an artifact with a contiguous
cache that does not speculate, which answers one request after the other, each
continuation as a request of its own. The other artifact has pages, speculates,
and answers all of them at once, continuations branching from one prompt, in
plenty of memory and in less and less: the tokens must be the same.

What a run did is taken from its answers, not from what it was asked for. Each
pair of what TABLE.md says to compose must have occurred in some run.
"""

import argparse
import itertools
import json
import re
import subprocess
import sys

from memory_sweep import refused, run

BEGINNING = "Once upon a time, there was a little girl named Lily. She had a red ball. "
REQUESTS = 12


def requests():
    """Half of them begin alike, some repeat themselves, a third branches."""
    for i in range(REQUESTS):
        prompt = (BEGINNING if i % 2 else "") + "Tom had a ball. " * (1 + i % 4) + "Tom had"
        request = {"prompt": prompt, "max_tokens": 40 - i}
        if i % 3 == 0:
            request |= {"n": 2, "temperature": 0.8, "seed": 10 * i}
        yield request


def single(request, choice):
    """The request of which continuation `choice` is the answer."""
    alone = {key: value for key, value in request.items() if key != "n"}
    if "seed" in alone:
        alone["seed"] += choice
    return alone


def write(path, lines):
    with open(path, "w") as file:
        for line in lines:
            print(json.dumps(line), file=file)


def compile_model(model, path, *options):
    subprocess.run(["llm-compile", model, "-o", path, *options], check=True)


def features(options, answers):
    """What a run of an artifact that was compiled with these options has done."""
    values = answers.values()
    found = {"paging"}
    if options.recipe not in ("none", "bf16"):
        found.add("weight format")
    if options.cache != "f32":
        found.add("cache type")
    if any(choice for _, choice in answers):
        found.add("fork")
    if any(answer["cached_tokens"] for answer in values):
        found.add("prefix sharing")
    if any(answer["accepted"] for answer in values):
        found.add("speculation")
    if any(answer["preemptions"] for answer in values):
        found.add("preemption")
    return found


def check(options, directory):
    """The sets of what was done together, with one recipe and type of cache."""
    plain, fast = f"{directory}/plain.llmx", f"{directory}/fast.llmx"
    common = [f"--recipe={options.recipe}"]
    if options.recipe.endswith("gptq"):
        common.append(f"--calibration={options.calibration}")
    compile_model(options.model, plain, *common, f"--kv={options.cache},page-size=0")
    compile_model(
        options.model,
        fast,
        *common,
        f"--kv={options.cache},page-size=16",
        "--speculate=lookup=2,tokens=4,cost=1",
    )
    wanted = list(requests())
    places = [(i, c) for i, one in enumerate(wanted) for c in range(one.get("n", 1))]
    write(f"{directory}/all.jsonl", wanted)
    write(f"{directory}/single.jsonl", [single(wanted[i], c) for i, c in places])
    one_by_one = ["llm-run", "generate", plain, "--prompts", f"{directory}/single.jsonl"]
    answers, _ = run([*one_by_one, "--max-sequences", "1", "--no-prefix-cache"], 1 << 30)
    expected = {place: answers[i, 0]["tokens"] for i, place in enumerate(places)}

    together = ["llm-run", "generate", fast, "--prompts", f"{directory}/all.jsonl"]
    together += ["--max-sequences", "8"]
    least = refused(together, 1024)
    done = []
    for extra in [1 << 30, 512 << 10, 128 << 10, 32 << 10, 0]:
        answers, _ = run(together, least + extra)
        got = {place: answer["tokens"] for place, answer in answers.items()}
        assert got == expected, (options.recipe, options.cache, extra)
        done.append(features(options, answers))
    return done


def read_table(path):
    """Pairs of names by what the table has where their row and column meet."""
    rows = [line.strip().strip("|").split("|") for line in open(path) if line.startswith("|")]
    rows = [[cell.strip() for cell in row] for row in rows]
    head, *body = [row for row in rows if not re.fullmatch("-*", row[0]) or row[0] == ""]
    cells = {}
    for row in body:
        for name, cell in zip(head[1:], row[1:]):
            if cell:
                cells[frozenset([row[0], name])] = cell
    return cells


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("directory")
    parser.add_argument("table")
    parser.add_argument("--recipes", default="none")
    parser.add_argument("--caches", default="f32")
    parser.add_argument("--calibration", help="a text for the recipes that need one")
    options = parser.parse_args()
    table = read_table(options.table)
    composes = {pair for pair, cell in table.items() if cell == "yes"}
    recipes, caches = options.recipes.split(","), options.caches.split(",")
    seen = set()
    for options.recipe, options.cache in itertools.product(recipes, caches):
        for names in check(options, options.directory):
            seen |= {frozenset(pair) for pair in itertools.combinations(sorted(names), 2)}
    for pair in sorted(map(sorted, composes - seen)):
        sys.exit(f"the table says that {pair[0]} and {pair[1]} compose, and no run shows it")
    for pair in sorted(map(sorted, seen - composes)):
        sys.exit(f"{pair[0]} and {pair[1]} composed; the table does not say so")
    count = len(recipes) * len(caches)
    print(f"{count} models answer alike; {len(composes)} pairs compose")


main()
