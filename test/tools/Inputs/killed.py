"""killed.py DIRECTORY COMMAND...: starts the command, and ends it by each of the
signals that end programs once it writes into the directory."""

import os
import signal
import subprocess
import sys
import time

directory, command = sys.argv[1], sys.argv[2:]
before = set(os.listdir(directory))
for number in (signal.SIGTERM, signal.SIGHUP):
    # Under nohup a signal would be ignored, which processes inherit.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    while set(os.listdir(directory)) == before and process.poll() is None:
        time.sleep(0.001)
    if process.poll() is not None:
        sys.exit("ended before it wrote")
    process.send_signal(number)
    if process.wait() == 0:
        sys.exit(f"{number.name} did not end it")
    if set(os.listdir(directory)) != before:
        sys.exit(f"{number.name} left {os.listdir(directory)}")
