"""Checks that logits do not depend on how a text is computed.

    same_bits.py LLM_RUN TOKENS OUTDIR ARTIFACT... [-- VARIANT...]

Scores TOKENS (one sequence per line) with each artifact and each variant (the
options of `llm-run perplexity`, comma separated) and compares the logits, bit
by bit, with the first artifact's in one piece. Artifacts differ in what must
not matter, such as the page size. Prints how many runs agreed.
"""

import subprocess
import sys

import numpy as np


def main():
    arguments, variants = sys.argv[1:], [""]
    if "--" in arguments:
        split = arguments.index("--")
        arguments, variants = arguments[:split], variants + arguments[split + 1 :]
    run, tokens, outdir, *artifacts = arguments
    reference = None
    for artifact in artifacts:
        for i, variant in enumerate(variants):
            out = f"{outdir}/logits.npy"
            command = [run, "perplexity", artifact, "--token-file", tokens, "--logits", out]
            command += variant.split(",") if variant else []
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            logits = np.load(out).view(np.uint32)
            if reference is None:
                reference = logits
            differing = np.flatnonzero((logits != reference).any(axis=1))
            if len(differing):
                sys.exit(f"{artifact} {variant}: {len(differing)} rows differ, first {differing[0]}")
    print(f"{len(artifacts) * len(variants)} runs of {len(reference)} rows agree")


main()
