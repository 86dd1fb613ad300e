#!/usr/bin/env bash
# Installs the peers of the benchmarks into DIR: a Python environment with
# onnxruntime-genai and OpenVINO GenAI, and programs of llama.cpp, built for this
# processor from the source package of llama-cpp-python.
#
#   benchmarks/peers/setup.sh DIR
#
# Takes about 6 GB and, on two cores, half an hour.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
llama=llama_cpp_python-0.3.36

stamp=$(cat "$here/requirements.txt" "$here/setup.sh" | sha256sum | cut -d' ' -f1)
[ "$(cat "$dir/.stamp" 2>/dev/null)" != "$stamp" ] || exit 0

python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"

if [ ! -d "$dir/$llama" ]; then
  "$dir/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps \
    --no-binary llama-cpp-python --dest "$dir" llama-cpp-python==${llama##*-}
  tar -xf "$dir/$llama.tar.gz" -C "$dir"
fi
# Not by GCC 12: its ldtilecfg reads 8 of 64 bytes as far as it knows, so the
# configuration is not written, and llama.cpp dies on processors with AMX.
cmake --fresh -S "$dir/$llama/vendor/llama.cpp" -B "$dir/llama.cpp" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_BUILD_APP=OFF \
  -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TESTS=OFF \
  -DLLAMA_OPENSSL=OFF -DCMAKE_C_COMPILER=clang-22 \
  -DCMAKE_CXX_COMPILER=clang++-22 >"$dir/cmake.log"
ninja -C "$dir/llama.cpp" llama-batched-bench llama-completion llama-quantize >"$dir/ninja.log"
echo "$stamp" >"$dir/.stamp"
