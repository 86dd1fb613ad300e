"""seconds.py DIRECTORY: checks "seconds" of m.llmx in it, and that a copy of
g.llmx does not show those of m.llmx."""

import json
import os
import shutil
import subprocess
import sys

attribute = "user.llm.pass-seconds"
model, other = (os.path.join(sys.argv[1], name) for name in ("m.llmx", "g.llmx"))
try:
    value = os.getxattr(model, attribute)
except OSError:
    print("no extended attributes here")
    sys.exit()


def seconds(path):
    passes = json.loads(subprocess.check_output(["llm-run", "inspect", path, "--json"]))["passes"]
    return [one.get("seconds") for one in passes]


times = seconds(model)
assert times and all(0 <= t < 600 for t in times) and any(times), times
copy = os.path.join(sys.argv[1], "copy.llmx")
shutil.copyfile(model, copy)
assert set(seconds(copy)) == {None}
os.setxattr(copy, attribute, value)
assert seconds(copy) == times
digits = value[:16]
for wrong in (b"0" * 16 + value[16:], value + b",1", digits, digits + b"1" * 5, value[:-3] + b"nan",
              value.replace(b",", b",-1", 1), b"\xff" * 100):
    os.setxattr(copy, attribute, wrong)
    assert set(seconds(copy)) == {None}, wrong
shutil.copyfile(other, copy)
os.setxattr(copy, attribute, value)
assert set(seconds(copy)) == {None}
print("seconds follow the manifest")
