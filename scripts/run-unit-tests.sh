#!/usr/bin/env bash
# Runs every GoogleTest program and adds up their counts.
# Usage: scripts/run-unit-tests.sh BUILD
set -uo pipefail
build=$1
passed=0
failed=0
shopt -s nullglob
for program in "$build"/test/unit/*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  output=$("$program" --gtest_brief=1 2>&1)
  status=$?
  good=$(sed -nE 's/^\[  PASSED  \] ([0-9]+) tests?.*/\1/p' <<<"$output" | tail -n 1)
  bad=$(sed -nE 's/^ *([0-9]+) FAILED TESTS?.*/\1/p' <<<"$output" | tail -n 1)
  good=${good:-0}
  bad=${bad:-0}
  if [ $status -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  if [ $status -eq 0 ] && [ "$good" -eq 0 ]; then bad=1; fi
  passed=$((passed + good))
  failed=$((failed + bad))
  if [ "$bad" -ne 0 ]; then
    echo "FAILED $(basename "$program")"
    echo "$output"
  fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
