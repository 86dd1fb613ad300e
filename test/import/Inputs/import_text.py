"""Imports the ONNX models of a test and prints what llm-opt says of each.

usage: import_text.py TEST WORKDIR LLM_OPT [OPTIONS...]

TEST holds models in ONNX's textual syntax, each led by a line `#--- NAME`.
Printed are `=== NAME` and the module, or the diagnostics and `exit code N`
where the tool fails. Paths are cut down to the file's name.
"""
import pathlib
import re
import subprocess
import sys

import onnx
import onnx.parser


def main() -> int:
    test, work, tool, *options = sys.argv[1:]
    work = pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    parts = re.split(r"^#--- *(\S+) *$", pathlib.Path(test).read_text(), flags=re.M)
    for name, text in zip(parts[1::2], parts[2::2]):
        text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        path = work / f"{name}.onnx"
        onnx.save(onnx.parser.parse_model(text), path)
        run = subprocess.run([tool, str(path), *options], capture_output=True, text=True, timeout=60)
        print(f"=== {name}")
        print(run.stdout.replace(f"{work}/", ""), end="")
        print(run.stderr.replace(f"{work}/", ""), end="")
        if run.returncode != 0:
            print(f"exit code {run.returncode}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
