"""one_error.py CODE COMMAND...: runs the command; fails unless it exits with CODE,
prints nothing on standard output and one error on standard error, which is
printed."""

import subprocess
import sys

wanted, command = int(sys.argv[1]), sys.argv[2:]
result = subprocess.run(command, capture_output=True, text=True)
sys.stdout.write(result.stderr)
lines = result.stderr.splitlines()
errors = [line for line in lines if "error:" in line or line.startswith("--")]
if result.returncode != wanted or result.stdout or len(errors) != 1:
    sys.exit(f"exit code {result.returncode}, {len(errors)} errors: {result.stderr!r}")
