"""lean.py FILE [LIBRARY...]: fails if FILE has a symbol of MLIR or LLVM, needs a
library beyond libc's, libstdc++'s, PCRE2 and those named, or has 8 MB or more
when stripped."""

import os
import subprocess
import sys
import tempfile

path, extra = sys.argv[1], sys.argv[2:]
allowed = {
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
    "libstdc++.so.6", "libgcc_s.so.1", "libpcre2-8.so.0", *extra,
}
dynamic = subprocess.run(["llvm-readelf", "-d", path], check=True, capture_output=True, text=True)
needed = {line.split("[")[1].split("]")[0] for line in dynamic.stdout.splitlines() if "(NEEDED)" in line}
if not needed or needed - allowed:
    sys.exit(f"{path} needs {sorted(needed - allowed)}")
symbols = subprocess.run(["llvm-nm", "-C", path], check=True, capture_output=True, text=True).stdout.splitlines()
found = [line for line in symbols if "mlir::" in line or "llvm::" in line]
if len(symbols) < 100 or found:
    sys.exit(f"{path}: {len(symbols)} symbols, of the compiler: {found[:5]}")
with tempfile.TemporaryDirectory() as directory:
    stripped = os.path.join(directory, "stripped")
    subprocess.run(["llvm-strip", "-o", stripped, path], check=True)
    size = os.path.getsize(stripped)
if size >= 8_000_000:
    sys.exit(f"{path} has {size} bytes")
print(f"{size} bytes stripped, {len(symbols)} symbols")
