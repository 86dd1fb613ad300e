"""Prints the first N tokens of a text, as an artifact's tokenizer splits it.

    first_tokens.py LLM_RUN ARTIFACT FILE N
"""

import subprocess
import sys


def main():
    run, artifact, path, count = sys.argv[1:]
    text = open(path, encoding="utf-8").read()[: 8 * int(count)]
    out = subprocess.run(
        [run, "tokenize", artifact, "--text", text], check=True, capture_output=True, text=True
    ).stdout
    tokens = out.strip().split(",")
    assert len(tokens) >= int(count), f"only {len(tokens)} tokens in {path}"
    print(" ".join(tokens[: int(count)]))


main()
