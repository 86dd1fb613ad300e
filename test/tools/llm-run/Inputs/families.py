"""families.py PLANNED DIR: names every kernel family of a planned module after one
whose operands the profile looks into, and profiles the artifact. A family is a
name in the file: the kernels are the same and have to run, and the profile must
take nothing for granted of operands that are others, or fewer."""

import json
import re
import subprocess
import sys
from pathlib import Path

planned, directory = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
artifact, module, trace = (directory / name for name in ("renamed.llmx", "renamed.mlir", "trace.json"))
for family in ("attention", "attention_merge", "embedding", "linear"):
    module.write_text(re.sub(r'family "\w+"', f'family "{family}"', planned))
    subprocess.run(["llm-compile", module, "-o", artifact, "--start-at=artifact"], check=True,
                   stderr=subprocess.DEVNULL)
    bench = subprocess.run(["llm-run", "bench", artifact, "--prompt-tokens", "20", "--gen-tokens", "2", "--profile",
                            "--trace", trace, "--json"], capture_output=True, text=True, timeout=60)
    if bench.returncode or bench.stderr:
        sys.exit(f"{family}: exit code {bench.returncode}: {bench.stderr}")
    entries = json.loads(bench.stdout)["profile"]
    if {entry["family"] for entry in entries} != {family}:
        sys.exit(f"{family}: the profile has other families")
    if any(entry["bytes"] < 0 or entry["operations"] < 0 for entry in entries):
        sys.exit(f"{family}: less than nothing was moved")
    print(f"{family}: {len(json.loads(trace.read_text()))} events")
