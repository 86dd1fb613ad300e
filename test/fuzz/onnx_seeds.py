"""Seeds for fuzz_onnx_import: small models of every operator family.

usage: onnx_seeds.py OUTDIR
"""
import pathlib
import re
import sys

import onnx.parser

here = pathlib.Path(__file__).resolve().parent
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
for test in sorted((here.parent / "import").glob("*.test")):
    parts = re.split(r"^#--- *(\S+) *$", test.read_text(), flags=re.M)
    for name, text in zip(parts[1::2], parts[2::2]):
        text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        model = onnx.parser.parse_model(text)
        (out / f"{test.stem}.{name}.onnx").write_bytes(model.SerializeToString())
