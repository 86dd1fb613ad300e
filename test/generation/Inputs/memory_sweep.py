"""Runs llm-run with less and less memory.

    memory_sweep.py COUNT SUBCOMMAND ARTIFACT OPTION...

From what a run without a limit may take, in COUNT steps, down to the least that
is accepted: each run must stay within its --memory, by the kernel's account,
and answer the same.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

UNIT = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def run(command, memory):
    """Answers by index and choice, and the peak of the resident set."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([*command, "--json", "--memory", str(memory)], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"--memory {memory}: status {status}")
        output.seek(0)
        answers = {}
        for line in output:
            answer = json.loads(line)
            answers[answer["index"], answer.get("choice", 0)] = answer
    return answers, usage.ru_maxrss * 1024


def refused(command, memory):
    result = subprocess.run([*command, "--memory", str(memory)], capture_output=True, text=True)
    assert result.returncode == 1, result
    match = re.search(r"this needs ([\d.]+) (\w+) .*?cache .*? for (\d+) slots", result.stderr)
    assert match, result.stderr
    # The message rounds to a tenth.
    return int((float(match[1]) + 0.1) * UNIT[match[2]])


def main():
    count, command = int(sys.argv[1]), ["llm-run", *sys.argv[2:]]
    least = refused(command, 1024)
    # Enough for all sequences at once: above it nothing changes.
    most = least + (4 << 20)
    expected = None
    preemptions = 0
    for i in range(count + 1):
        memory = most - (most - least) * i // count
        answers, peak = run(command, memory)
        if peak > memory:
            sys.exit(f"the peak is {peak} bytes, --memory {memory}")
        preemptions += sum(answer["preemptions"] for answer in answers.values())
        tokens = {index: answer["tokens"] for index, answer in answers.items()}
        if expected is None:
            expected = tokens
        if tokens != expected:
            sys.exit(f"--memory {memory} changes an answer")
    print(f"{count + 1} runs within {least} to {most} bytes, {preemptions} preemptions")


if __name__ == "__main__":
    main()
