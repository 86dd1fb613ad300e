#!/usr/bin/env bash
# Runs the programs that CTest knows and adds up their tests.
# Usage: scripts/run-unit-tests.sh BUILD
set -uo pipefail
build=$1
log=$build/unit-tests.log
ctest --test-dir "$build" --verbose --parallel 2 --timeout 1200 >"$log" 2>&1
status=$?
passed=$(sed -nE 's/.*\[  PASSED  \] ([0-9]+) tests?.*/\1/p' "$log" |
  awk '{ sum += $1 } END { print sum + 0 }')
failed=$(sed -nE 's/^[0-9]+: +([0-9]+) FAILED TESTS?.*/\1/p' "$log" |
  awk '{ sum += $1 } END { print sum + 0 }')
# A program that crashed or ran nothing counts as one failure.
if [ $status -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
if [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
[ "$failed" -eq 0 ] || cat "$log"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
