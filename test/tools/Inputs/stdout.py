"""stdout.py COMMAND...: runs the command with a standard output that is full,
one that is closed, and one that nobody reads. Each must end with exit code 1 and
one line on standard error, which is printed."""

import os
import subprocess
import sys


def run(how, prepare, stdout):
    result = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=stdout,
                            stderr=subprocess.PIPE, text=True, preexec_fn=prepare)
    if result.returncode != 1 or result.stderr.count("\n") != 1:
        sys.exit(f"{how}: exit code {result.returncode}, {result.stderr!r}")
    print(how + ": " + result.stderr, end="")


with open("/dev/full", "w") as full:
    run("full", None, full)
run("closed", lambda: os.close(1), None)
reader, writer = os.pipe()
os.close(reader)
run("unread", None, writer)
