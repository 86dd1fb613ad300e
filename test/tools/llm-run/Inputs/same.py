"""same.py KEY FILE FILE...: fails unless the JSON objects in the files (one to a
file, or one to a line, sorted by "index") have equal values of KEY."""

import json
import sys


def values(path):
    objects = [json.loads(line) for line in open(path)]
    objects.sort(key=lambda o: o.get("index", 0))
    return [o[sys.argv[1]] for o in objects]


first = values(sys.argv[2])
if not first:
    sys.exit(f"{sys.argv[2]} is empty")
for path in sys.argv[3:]:
    if values(path) != first:
        sys.exit(f"{sys.argv[2]} and {path} differ:\n{first}\n{values(path)}")
print(f"{len(first)} equal")
