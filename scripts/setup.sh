#!/usr/bin/env bash
# Installs what the build and its tests need on a bare Debian 12, as root or
# through sudo, and the pinned Python environment in build/venv. Does nothing
# when everything is there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  # Toolchain
  ccache clang-22 clang-format-22 clang-tidy-22 cmake git libclang-rt-22-dev
  lld-22 make ninja-build pkg-config
  # Compiler
  liblld-22-dev libmlir-22-dev libopenblas-serial-dev libprotobuf-dev
  llvm-22-dev llvm-22-tools mlir-22-tools protobuf-compiler
  # Runtime
  libcli11-dev libpcre2-dev libutf8proc-dev libxxhash-dev nlohmann-json3-dev
  # What LLVM's CMake packages ask for
  libffi-dev libxml2-dev libzstd-dev zlib1g-dev
  # Tests
  libbenchmark-dev libgmock-dev libgtest-dev python3 python3-psutil python3-venv
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null |
    grep -q 'install ok installed' || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "setup: run as root or install sudo; missing: ${missing[*]}" >&2
      exit 1
    }
    sudo=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" >/dev/null
fi

scripts/make-venv.sh build/venv

# The assembler of GPU code, where no CUDA toolkit brings it. Without it the
# compiler writes PTX alone, and the tests that need it are skipped.
if ! command -v ptxas >/dev/null &&
  [ ! -x "${CUDA_ROOT:-${CUDA_HOME:-${CUDA_PATH:-/usr/local/cuda}}}/bin/ptxas" ] &&
  ! compgen -G 'build/venv/lib/python3*/site-packages/nvidia/*/bin/ptxas' >/dev/null
then
  build/venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --no-deps --only-binary=:all: nvidia-cuda-nvcc==13.0.88 ||
    echo "setup: ptxas could not be installed; going on without it" >&2
fi
