"""Compares the mean NLL of each story with the golden file.

    golden_nll.py LLM_RUN ARTIFACT STORIES GOLDEN

STORIES is the text with a blank line, or `<|endoftext|>`, between stories;
GOLDEN has a line "N tokens, M scored, mean NLL X" for each and one for all.
"""

import json
import re
import subprocess
import sys
import tempfile


def main():
    run, artifact, tokens, golden = sys.argv[1:]
    expected = [
        (int(m[1]), float(m[2]))
        for m in re.finditer(r"tokens, (\d+) scored, mean NLL ([\d.]+)", open(golden).read())
    ]
    lines = [line for line in open(tokens).read().splitlines() if line.strip()]
    assert len(lines) == len(expected), (len(lines), len(expected))
    for line, (scored, nll) in zip(lines, expected):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(" ".join(line.split()[:512]) + "\n")
            file.flush()
            out = subprocess.run(
                [run, "perplexity", artifact, "--token-file", file.name, "--json"],
                check=True, capture_output=True, text=True,
            ).stdout
        got = json.loads(out)
        assert got["tokens"] == scored, (got, scored)
        assert abs(got["nll"] - nll) <= 1e-3, (got, nll)
    print(f"{len(lines)} stories agree")


main()
