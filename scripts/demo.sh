#!/usr/bin/env bash
# Exports SmolLM2-135M-Instruct to ONNX, compiles it, asks it something, and
# prints the answer and its speeds. `make demo` builds the tools first.
# Usage: scripts/demo.sh [QUESTION...]
#
# Leaves build/models/smollm2/model.onnx and build/demo/smollm2.llmx; what is
# there and newer than all that it is made from is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
questions=("$@")
[ $# -gt 0 ] || questions=("What is the capital of France?"
  "Explain in two sentences why the sky is blue.")
build=build
python=$build/venv/bin/python
model=$build/models/smollm2
artifact=$build/demo/smollm2.llmx

# up_to_date FILE SOURCES...: FILE is there and none of SOURCES is newer.
up_to_date() {
  local file=$1 source
  shift
  [ -e "$file" ] || return 1
  for source in "$@"; do
    [ "$source" -nt "$file" ] && return 1
  done
  return 0
}

scripts/make-venv.sh $build/venv
gguf=$(models/fetch_smollm2.sh $build/venv)

exporters=(models/export_gguf.py models/gguf_tokenizer.py models/llama_graph.py
  models/onnx_writer.py)
if up_to_date $model/model.onnx "$gguf" "${exporters[@]}"; then
  echo "== $model/model.onnx is up to date"
else
  echo "== Exporting $(basename "$gguf") to $model/model.onnx"
  # Made aside, so that an interrupted export is not taken for a whole one.
  rm -rf $model.partial
  mkdir -p "$(dirname $model)"
  "$python" models/export_gguf.py "$gguf" $model.partial
  rm -rf $model
  mv $model.partial $model
fi

if up_to_date $artifact $model/model.onnx $build/bin/llm-compile \
  $build/lib/libLLMCompiler.so; then
  echo "== $artifact is up to date"
else
  echo "== Compiling it to $artifact"
  mkdir -p "$(dirname $artifact)"
  start=$SECONDS
  $build/bin/llm-compile $model -o $artifact
  echo "   $(du -h --apparent-size $artifact | cut -f1)B, $((SECONDS - start)) s"
fi

# Prints the JSON of `llm-run generate` for people.
show=$(
  cat <<'PYTHON'
import json
import sys
import textwrap

answer = json.load(sys.stdin)
for line in answer["text"].strip().splitlines():
    print(textwrap.fill(line, 78, initial_indent="   ", subsequent_indent="   "))
prompt, generated = answer["prompt_tokens"], len(answer["tokens"])
print(f"   [prefill: {prompt} tokens, {1e3 * prompt / answer['ttft_ms']:.0f} per second; "
      f"decode: {generated} tokens, {answer['decode_tokens_per_s']:.1f} per second]")
if answer["finish_reason"] == "length":
    print("   [cut: the model had not ended its answer]")
PYTHON
)

# Greedy, so that the answers are the same each time.
for question in "${questions[@]}"; do
  echo
  echo "== $question"
  answer=$($build/bin/llm-run generate $artifact --chat --prompt "$question" \
    --max-tokens 200 --json)
  "$python" -c "$show" <<<"$answer"
done
