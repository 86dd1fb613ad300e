#!/usr/bin/env python3
"""Runs clang-tidy, and fails where it finds something.

    scripts/tidy.py BUILD all|changed

`changed`: the sources that the last commit added or modified, at most twelve.
`all`: every source that BUILD compiles. What was found clean is remembered in
BUILD/tidy by a hash of the source, the headers that it includes, its command
and .clang-tidy, so that a second run only looks at what has changed since.
"""

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_CHANGED = 12


def lines_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


@functools.lru_cache(maxsize=None)
def digest_of(path, changed):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def digest(path):
    try:
        return digest_of(path, os.stat(path).st_mtime_ns)
    except OSError:
        return None


def headers_of(build):
    """object: the files that it was made of, as the last build found them."""
    found, current = {}, None
    for line in lines_of("ninja", "-C", build, "-t", "deps"):
        if line.startswith(" "):
            if current is not None:
                current.append(str((build / line.strip()).resolve()))
        elif ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], []) if "(VALID)" in line else None
    return found


def key_of(command, headers):
    """A hash of all that clang-tidy reads; None where that is not known."""
    output = re.search(r" -o (\S+)", command["command"])
    files = output and headers.get(output[1])
    if not files:
        return None
    parts = [digest(ROOT / ".clang-tidy"), " ".join(command["command"].split()), command["file"]]
    parts += [digest(file) for file in [command["file"], *sorted(files)]]
    configs = [parent / ".clang-tidy" for parent in Path(command["file"]).parents if ROOT in parent.parents]
    parts += [digest(config) for config in configs if config.exists()]
    return None if None in parts else hashlib.sha256("\n".join(parts).encode()).hexdigest()


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("all", "changed"):
        sys.exit(__doc__)
    build = (ROOT / sys.argv[1]).resolve()
    commands = {c["file"]: c for c in json.loads((build / "compile_commands.json").read_text())}
    if sys.argv[2] == "all":
        names = lines_of("git", "ls-files", "*.cpp")
    else:
        names = lines_of("git", "diff", "--name-only", "--diff-filter=AM", "HEAD~1", "--", "*.cpp")[:MAX_CHANGED]
    files = [str(ROOT / name) for name in names if str(ROOT / name) in commands]
    clean, headers = build / "tidy", headers_of(build)
    clean.mkdir(exist_ok=True)
    keys = {file: key_of(commands[file], headers) for file in files}
    todo = [file for file in files if not (keys[file] and (clean / keys[file]).exists())]

    def check(file):
        done = subprocess.run(["clang-tidy-22", "-p", build, "--quiet", "--warnings-as-errors=*", file],
                              capture_output=True, text=True)
        # Not where a file changed meanwhile.
        if done.returncode == 0 and keys[file] and key_of(commands[file], headers) == keys[file]:
            (clean / keys[file]).touch()
        if done.returncode:
            print(done.stdout, flush=True)
        return done.returncode

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = sum(1 for status in pool.map(check, todo) if status)
    print(f"{len(files) - findings} of {len(files)} files clean, {len(files) - len(todo)} known from before")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
