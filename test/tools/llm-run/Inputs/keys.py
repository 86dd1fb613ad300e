"""keys.py PAGE FILE...: every key of the JSON in the files is in the page, and no
value is null."""

import json
import re
import sys

page = set(re.findall(r"`(\w+)`", open(sys.argv[1]).read()))
found = set()


def walk(value):
    if isinstance(value, dict):
        found.update(value)
        list(map(walk, value.values()))
    elif isinstance(value, list):
        list(map(walk, value))
    elif value is None:
        sys.exit("a null")


for path in sys.argv[2:]:
    for line in open(path):
        walk(json.loads(line))
if found - page:
    sys.exit(f"not documented: {sorted(found - page)}")

inspect = json.load(open(sys.argv[2]))
target, single = inspect["targets"][0], inspect["passes"][0]
for value, keys in (
    (inspect, "decoder targets passes memory"),
    (target, "target arch row_invariant row_count_variants kernels"),
    (target["kernels"][0], "name registers spill_bytes shared_bytes"),
    (single, "name options bytes_before bytes_after"),
    (inspect["memory"], "weights_bytes activation_bytes kv_bytes_per_token fixed_bytes"),
):
    if missing := set(keys.split()) - set(value):
        sys.exit(f"missing: {missing}")
for low, high in target["row_count_variants"]:
    if not 1 <= low <= high:
        sys.exit(f"range {low} to {high}")
print(len(found), "keys, all documented, no null")
