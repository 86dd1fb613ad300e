#!/usr/bin/env bash
# Writes one page per dialect and per group of passes, from the .td files.
# Usage: scripts/generate-docs.sh OUTDIR
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
mkdir -p "$out/dialects" "$out/passes"
tblgen=/usr/lib/llvm-22/bin/mlir-tblgen
include=(-I . -I /usr/lib/llvm-22/include)
for dialect in LLM KV Decode RT; do
  name=$(echo "$dialect" | tr '[:upper:]' '[:lower:]')
  "$tblgen" -gen-dialect-doc -dialect="$name" "${include[@]}" \
    "dialects/$dialect/IR/${dialect}Ops.td" >"$out/dialects/$dialect.md"
done
find passes lib -name Passes.td | sort | while read -r td; do
  group=$(dirname "${td#passes/}" | sed 's|^lib/||' | tr / -)
  "$tblgen" -gen-pass-doc "${include[@]}" "$td" >"$out/passes/$group.md"
done
