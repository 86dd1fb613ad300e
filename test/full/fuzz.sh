#!/usr/bin/env bash
# Fuzzes every parser of outside bytes with ASan and UBSan, FUZZ_SECONDS each
# (600 by default). A finding fails, and its input is left in
# build-asan/fuzz/<name>.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${FUZZ_SECONDS:-600}
python=$PWD/build/venv/bin/python
cmake --preset asan -DLLM_VENV="$PWD/build/venv" >build/asan-configure.log
ninja -C build-asan fuzz_artifact fuzz_onnx_import fuzz_tensor fuzz_tokenizer
"$python" test/fuzz/onnx_seeds.py build-asan/fuzz/fuzz_onnx_import/seeds
"$python" test/fuzz/tokenizer_seeds.py build-asan/fuzz/fuzz_tokenizer/seeds

# fuzz NAME OPTION...: the binary lies where its CMake target put it.
fuzz() {
  local name=$1
  shift
  local dir=$PWD/build-asan/fuzz/$name
  mkdir -p "$dir/corpus" "$dir/seeds"
  local binary=$PWD/build-asan/bin/$name
  # MLIR lives as long as the process: what it keeps is no leak of ours.
  (cd "$dir" && ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 "$binary" corpus seeds \
    -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=60 \
    -print_final_stats=1 "$@" 2>&1 | tail -n 12)
}

# Two at a time.
fuzz fuzz_artifact -max_len=65536 &
first=$!
fuzz fuzz_onnx_import -max_len=16384
wait $first
fuzz fuzz_tensor -max_len=65536 &
first=$!
fuzz fuzz_tokenizer -max_len=65536
wait $first
