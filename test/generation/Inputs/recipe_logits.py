"""Compares the logits of each recipe with those of the recipe it is bounded by.

    recipe_logits.py LLM_COMPILE LLM_RUN MODEL DIR [OPTION of LLM_COMPILE]...

The error is |difference| / |reference| over all logits, in the 2-norm. It must
lie under a bound and, so that the test sees the recipe at work, over a tenth of
it.
"""

import random
import subprocess
import sys

import numpy as np

BOUNDS = {"bf16": ("none", 0.02), "w8a8": ("none", 0.05), "w4a16": ("none", 0.5), "w4a8": ("w4a16", 0.1)}


def main():
    compiler, run, model, directory, *more = sys.argv[1:]
    generator = random.Random(3)
    tokens = f"{directory}/tokens.txt"
    with open(tokens, "w") as file:
        for length in (97, 64, 33):
            file.write(" ".join(str(generator.randrange(3, 256)) for _ in range(length)) + "\n")
    logits = {}
    for recipe in ("none", *BOUNDS):
        artifact, out = f"{directory}/{recipe}.llmx", f"{directory}/{recipe}.npy"
        subprocess.run([compiler, model, "-o", artifact, f"--recipe={recipe}", *more], check=True)
        subprocess.run([run, "perplexity", artifact, "--token-file", tokens, "--logits", out],
                       check=True, stdout=subprocess.DEVNULL)
        logits[recipe] = np.load(out).astype(np.float64)
    for recipe, (base, bound) in BOUNDS.items():
        error = np.linalg.norm(logits[recipe] - logits[base]) / np.linalg.norm(logits[base])
        print(f"{recipe}: {error:.2e} from {base}")
        assert bound / 10 <= error <= bound, (recipe, error, bound)
    print(f"{len(BOUNDS)} recipes within their bounds")


main()
