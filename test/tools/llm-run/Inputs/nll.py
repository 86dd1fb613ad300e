"""nll.py LOGITS.npy TOKENS.txt RESULT.json: recomputes what `perplexity` reports
from the logits that it wrote."""

import json
import sys

import numpy as np

logits = np.load(sys.argv[1]).astype(np.float64)
result = json.load(open(sys.argv[3]))
row = 0
total, count = 0.0, 0
for line in open(sys.argv[2]):
    ids = [int(word) for word in line.split()]
    for i, token in enumerate(ids[1:]):
        values = logits[row + i]
        peak = values.max()
        total += peak + np.log(np.exp(values - peak).sum()) - values[token]
        count += 1
    row += len(ids)
assert count == result["tokens"], (count, result)
assert abs(total / count - result["nll"]) < 1e-9, (total / count, result)
assert abs(np.exp(total / count) / result["perplexity"] - 1) < 1e-9
print(f"nll agrees over {count} tokens")
