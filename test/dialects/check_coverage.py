"""Checks that the round-trip test of each dialect has every op of it.

Usage: check_coverage.py PAGES TESTS: the directory of the generated reference,
and the one that holds DIALECT/ops.mlir.
"""

import pathlib
import re
import sys

pages, tests = map(pathlib.Path, sys.argv[1:])
total, missing = 0, []
for page in sorted(pages.glob("*.md")):
    checks = re.findall(
        r"CHECK[A-Z-]*: (.*)", (tests / page.stem / "ops.mlir").read_text()
    )
    for op in re.findall(r"^### `([\w.]+)` \(", page.read_text(), re.MULTILINE):
        total += 1
        if not any(re.search(rf"(^| ){re.escape(op)}( |$)", c) for c in checks):
            missing.append(op)
print(f"{total} ops, {len(missing)} without a test: {' '.join(missing)}")
sys.exit(1 if missing or not total else 0)
