"""interrupt.py COMMAND...: runs the command, sends SIGINT as soon as it prints
something, and fails unless it ends soon, with 130 and nothing on standard
error."""

import os
import signal
import subprocess
import sys

process = subprocess.Popen(
    sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE
)
first = os.read(process.stdout.fileno(), 1)
if not first:
    sys.exit(f"it printed nothing: {process.stderr.read()!r}")
process.send_signal(signal.SIGINT)
output, errors = process.communicate(timeout=120)
if process.returncode != 130 or errors:
    sys.exit(f"exit code {process.returncode}, errors {errors!r}")
print(f"stopped after {1 + len(output)} bytes")
