"""better.py TEXT REFERENCE GPTQ RTN: which part of what rounding loses in mean
log-likelihood on a text GPTQ loses."""

import json
import subprocess
import sys

text, artifacts = sys.argv[1], sys.argv[2:]


def nll(artifact):
    command = ["llm-run", "perplexity", artifact, "--file", text, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["nll"]


reference, gptq, rtn = map(nll, artifacts)
print(f"gptq loses {(gptq - reference) / (rtn - reference):.3f} of {rtn - reference:.4f}")
