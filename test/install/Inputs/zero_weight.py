#!/usr/bin/env python3
"""A copy of a model with one of its weights set to zero:

    zero_weight.py DIR/model.onnx WEIGHT OUTDIR

The weight lies in the external data.
"""

import shutil
import sys
from pathlib import Path

import onnx


def main():
    source, name, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    shutil.copytree(source.parent, out)
    model = onnx.load(source, load_external_data=False)
    tensor = next(t for t in model.graph.initializer if t.name == name)
    where = {entry.key: entry.value for entry in tensor.external_data}
    with open(out / where["location"], "r+b") as data:
        data.seek(int(where.get("offset", 0)))
        data.write(bytes(int(where["length"])))


if __name__ == "__main__":
    main()
