#!/usr/bin/env bash
# Runs the tests and ends in "N passed, N failed".
# Usage: scripts/check.sh quick|default|full
set -uo pipefail
cd "$(dirname "$0")/.."
level=${1:-default}
build=build
passed=0
failed=0
failures=()

# step NAME COMMAND...: one check that passes or fails as a whole.
step() {
  local name=$1
  shift
  local log="$build/check-logs/$name.log"
  mkdir -p "$build/check-logs"
  local start=$SECONDS
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    echo "ok    $name ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    failures+=("$name")
    echo "FAIL  $name ($((SECONDS - start)) s)"
    tail -n 60 "$log"
  fi
}

# suite NAME COMMAND...: a test runner; its own counts are added.
suite() {
  local name=$1
  shift
  local log="$build/check-logs/$name.log"
  mkdir -p "$build/check-logs"
  local start=$SECONDS
  "$@" >"$log" 2>&1
  local status=$?
  local good bad
  good=$(sed -nE 's/^ *Passed *: ([0-9]+).*/\1/p; s/^([0-9]+) passed, [0-9]+ failed.*/\1/p' "$log" | tail -n 1)
  bad=$(sed -nE 's/^ *(Failed|Unresolved|Timed Out|Unexpectedly Passed) *: ([0-9]+).*/\2/p; s/^[0-9]+ passed, ([0-9]+) failed.*/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
  good=${good:-0}
  bad=${bad:-0}
  # A runner that failed without saying what, or that ran nothing, is a failure.
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  if [ "$good" -eq 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  passed=$((passed + good))
  failed=$((failed + bad))
  if [ "$bad" -eq 0 ]; then
    echo "ok    $name: $good passed ($((SECONDS - start)) s)"
  else
    failures+=("$name")
    echo "FAIL  $name: $good passed, $bad failed ($((SECONDS - start)) s)"
    grep -E '^(FAIL|UNRESOLVED|TIMEOUT|XPASS|FAILED)' "$log" | sort -u | head -n 40
    tail -n 60 "$log"
  fi
}

format_check() {
  git ls-files '*.cpp' '*.h' '*.c' | xargs -r clang-format-22 --dry-run -Werror
}

docs_check() {
  local fresh
  fresh=$(mktemp -d)
  scripts/generate-docs.sh "$fresh" && diff -r "$fresh" docs/generated
  local status=$?
  rm -rf "$fresh"
  [ $status -eq 0 ] || echo "docs/generated is stale: run make docs"
  return $status
}

lit_filter=()
[ "$level" = quick ] && lit_filter=(--filter-out='slow/')
[ "$level" = full ] || lit_filter+=(--param=full=0)
[ "$level" = full ] && lit_filter+=(--param=full=1)

step format format_check
step docs docs_check
# The host's own instruction sets in the quick check, some of those below in the
# default one.
[ "$level" = quick ] && export LLM_TEST_CPUS=native
[ "$level" = full ] && export LLM_TEST_CPUS=all
suite unit scripts/run-unit-tests.sh $build
suite lit /usr/lib/llvm-22/bin/lit -sv --timeout=900 "${lit_filter[@]}" $build/test
if [ "$level" != quick ]; then
  subset=(--subset)
  [ "$level" = full ] && subset=()
  suite conformance $build/venv/bin/python test/conformance/run.py \
    $build/bin/conformance-runner "${subset[@]}"
  for script in math_accuracy narrow_floats run_time_errors; do
    suite $script $build/venv/bin/python test/conformance/$script.py \
      $build/bin/conformance-runner
  done
  step tidy-changed scripts/tidy.py $build changed
fi
if [ "$level" = full ]; then
  step tidy-all scripts/tidy.py $build all
  for script in test/full/*.sh; do
    [ -e "$script" ] && step "$(basename "$script" .sh)" bash "$script"
  done
fi

if [ $failed -gt 0 ]; then
  echo "failed: ${failures[*]}"
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
