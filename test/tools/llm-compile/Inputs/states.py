"""states.py DIRECTORY COMMAND...: kills the command twice when it has a state in the
directory, and says how many states there were."""

import os
import signal
import subprocess
import sys
import time

directory, command = sys.argv[1], sys.argv[2:]


def states():
    names = os.listdir(directory) if os.path.isdir(directory) else []
    return {name for name in names if name.endswith(".partial")}


seen = set()
for _ in range(2):
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    before = time.monotonic()
    # Long enough for the state to be opened anew where it was there.
    while process.poll() is None and (
        not states() or time.monotonic() - before < 0.3
    ):
        time.sleep(0.0005)
    seen |= states()
    process.send_signal(signal.SIGKILL)
    process.wait()
print(f"2 runs, {len(seen)} state")
