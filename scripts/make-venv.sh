#!/bin/bash
# Creates the pinned Python environment in VENV_DIR, or does nothing when it is
# already the one that models/requirements.txt describes.
#
#   scripts/make-venv.sh VENV_DIR          PYTHON=python3.11 to choose another
#
# A finished environment carries a stamp: the hash of the requirements and of
# the interpreter's version. Another stamp, or none, means it is made anew.
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: $0 VENV_DIR" >&2
  exit 2
fi
venv=$1
python=${PYTHON:-python3}
requirements=$(cd "$(dirname "$0")/.." && pwd)/models/requirements.txt

if ! version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); then
  echo "$0: error: '$python' does not run; install python3 or set PYTHON" >&2
  exit 1
fi
case $version in
  3.11|3.12|3.13) ;;
  *)
    echo "$0: error: '$python' is Python $version; the pinned packages have" \
         "wheels for 3.11 to 3.13; set PYTHON to one of those" >&2
    exit 1 ;;
esac

stamp=$(cat "$requirements" - <<<"$version" | sha256sum | cut -d' ' -f1)
if [ -x "$venv/bin/python" ] && [ "$(cat "$venv/.stamp" 2>/dev/null)" = "$stamp" ]; then
  exit 0
fi
# Only ever remove what is an environment: a mistyped directory stays whole.
if [ -e "$venv" ] && [ ! -f "$venv/pyvenv.cfg" ]; then
  echo "$0: error: '$venv' exists and is not a Python environment" >&2
  exit 1
fi

rm -rf "$venv"
if ! "$python" -m venv "$venv"; then
  rm -rf "$venv"
  echo "$0: error: '$python -m venv' failed; on Debian: apt-get install python3-venv" >&2
  exit 1
fi
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
     --only-binary=:all: -r "$requirements"; then
  echo "$0: error: the packages of $requirements could not be installed" >&2
  exit 1
fi
echo "$stamp" >"$venv/.stamp"
