"""Checks that two modules are the same but for locations and provenance.

    same_module.py LLM_OPT A.mlir B.mlir

Directories in weight spans and the model's hash differ between two exports;
everything else must not.
"""

import difflib
import re
import subprocess
import sys


def normal(opt, path):
    text = subprocess.run([opt, path], check=True, capture_output=True, text=True).stdout
    text = re.sub(r"llm\.source = \{.*?producer", "llm.source = {producer", text)
    return re.sub(r'#llm\.span<"[^"]*/', '#llm.span<"', text).splitlines()


def main():
    opt, *paths = sys.argv[1:]
    a, b = (normal(opt, path) for path in paths)
    if a != b:
        sys.exit("\n".join(list(difflib.unified_diff(a, b, *paths, lineterm=""))[:40]))
    assert any("decode.loop" in line for line in a), "no decoder was raised"
    print(f"{len(a)} lines agree")


main()
