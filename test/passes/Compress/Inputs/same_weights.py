"""same_weights.py A.mlir B.mlir: for each layer, whether its quantized weights have the
same codes and scales in both modules."""

import re
import sys

WEIGHT = re.compile(r"llm\.weight @(\S*layers\.(\d+)\.\S*_proj\S*) .*?= #llm\.affine(.*)")


def hashes(path):
    weights = {}
    for line in open(path):
        if match := WEIGHT.search(line):
            found = re.findall(r'"([0-9a-f]{16})"', match[3])
            assert len(found) == 2, line
            weights.setdefault(int(match[2]), {})[match[1]] = found
    return weights


a, b = map(hashes, sys.argv[1:])
assert a.keys() == b.keys() and all(len(a[layer]) == 7 for layer in a), a.keys()
for layer in sorted(a):
    print(layer, "same" if a[layer] == b[layer] else "other")
