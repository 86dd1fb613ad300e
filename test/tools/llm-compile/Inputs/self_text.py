"""self_text.py ARTIFACT COUNT: texts that a model writes itself, drawn with the
seeds 1 to COUNT."""

import json
import subprocess
import sys
import tempfile

artifact, count = sys.argv[1], int(sys.argv[2])
with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
    for seed in range(1, count + 1):
        request = {"prompt": "Once upon a time", "max_tokens": 240, "temperature": 1.0, "seed": seed}
        prompts.write(json.dumps(request) + "\n")
    prompts.flush()
    command = ["llm-run", "generate", artifact, "--prompts", prompts.name, "--json"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
answers = sorted((json.loads(line) for line in lines), key=lambda answer: answer["index"])
for answer in answers:
    print("Once upon a time" + answer["text"])
