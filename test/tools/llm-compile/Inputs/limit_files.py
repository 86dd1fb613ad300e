"""Runs a command that can write no file beyond some bytes: limit_files.py BYTES COMMAND..."""

import os
import resource
import signal
import sys

# Ignored, the signal leaves an error of write(2).
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execvp(sys.argv[2], sys.argv[2:])
