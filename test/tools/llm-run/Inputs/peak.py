"""peak.py SUBCOMMAND ARTIFACT ARGS...: finds the memory that llm-run says it
needs, runs within exactly that, and compares the kernel's figure of the peak."""

import re
import resource
import subprocess
import sys

command = ["llm-run", *sys.argv[1:]]
units = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "bytes": 1}
refused = subprocess.run([*command, "--memory", "1KiB"], capture_output=True, text=True)
match = re.search(r"this needs ([0-9.]+) (\w+)", refused.stderr)
assert refused.returncode == 1 and match, refused.stderr
# The message is rounded: round up by one unit of its last digit.
size = int((float(match[1]) + 0.1) * units[match[2]])
subprocess.run([*command, "--memory", str(size)], check=True, stdout=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
if peak > size:
    sys.exit(f"the peak is {peak} bytes, the certificate {size}")
print(f"peak {peak} of {size} bytes")
