"""Checks that a run stays within the memory that the runtime admits it by.

    within_certificate.py LLM_RUN ARTIFACT OPTION...

Runs `llm-run generate` twice: with a limit that cannot do, to read how much the
run needs, then without. The peak resident set must not exceed that figure.
"""

import re
import resource
import subprocess
import sys

UNIT = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def main():
    run, artifact, *options = sys.argv[1:]
    command = [run, "generate", artifact, *options]
    refused = subprocess.run([*command, "--memory", "1MiB"], capture_output=True, text=True)
    assert refused.returncode == 1, refused
    match = re.search(r"needs ([\d.]+) (B|KiB|MiB|GiB)", refused.stderr)
    assert match, refused.stderr
    # The message rounds to a tenth.
    certified = (float(match[1]) + 0.05) * UNIT[match[2]]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert peak <= certified, f"peak {peak / 2**20:.1f} MiB, certified {certified / 2**20:.1f} MiB"
    print(f"peak {peak / 2**20:.1f} MiB within {certified / 2**20:.1f} MiB")


main()
