"""while_locked.py DIRECTORY COMMAND...: runs the command while another process, this
one, has locked the directory; exits as the command does."""

import fcntl
import os
import subprocess
import sys

directory = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(directory, fcntl.LOCK_EX)
sys.exit(subprocess.run(sys.argv[2:]).returncode)
