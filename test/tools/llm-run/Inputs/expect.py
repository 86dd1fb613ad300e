"""expect.py CODE COMMAND...: runs the command; fails unless it exits with CODE
and, where CODE is not 0, prints nothing on standard output. With CODE 1 it must
print one line on standard error."""

import subprocess
import sys

wanted, command = int(sys.argv[1]), sys.argv[2:]
result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
sys.stderr.write(result.stderr)
if result.returncode != wanted:
    sys.exit(f"exit code {result.returncode}, expected {wanted}: {command}")
if wanted != 0 and result.stdout:
    sys.exit(f"output in spite of the failure: {result.stdout!r}")
if wanted == 1 and result.stderr.count("\n") != 1:
    sys.exit(f"not one line: {result.stderr!r}")
sys.stdout.write(result.stdout)
