"""kill_when.py FILE COMMAND...: starts the command and kills it as soon as the file
is there, which it must be before the command ends."""

import os
import signal
import subprocess
import sys
import time

file, command = sys.argv[1], sys.argv[2:]
process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
while not os.path.exists(file) and process.poll() is None:
    time.sleep(0.0005)
if process.poll() is not None:
    sys.exit(f"ended with {process.returncode} and was not killed")
process.send_signal(signal.SIGKILL)
if process.wait() != -signal.SIGKILL:
    sys.exit("was not killed in time")
