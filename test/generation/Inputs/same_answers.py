"""Compares what was answered without speculation and with it.

    same_answers.py PLAIN.json FILE.json...

Fails unless each file has the first one's tokens, texts and reasons for every
request and continuation, and unless the drafts of each were partly right.
"""

import json
import sys


def read(path):
    lines = [json.loads(line) for line in open(path)]
    return {(one.get("index", 0), one.get("choice", 0)): one for one in lines}


def main():
    plain = read(sys.argv[1])
    assert plain, f"{sys.argv[1]} is empty"
    for path in sys.argv[2:]:
        other = read(path)
        assert plain.keys() == other.keys(), path
        for key, expected in plain.items():
            for what in ["tokens", "text", "finish_reason"]:
                got = other[key][what]
                assert got == expected[what], f"{path} {key}: {expected[what]} {got}"
        drafted = sum(one["drafted"] for one in other.values())
        accepted = sum(one["accepted"] for one in other.values())
        assert 0 < accepted < drafted, f"{path}: {accepted} of {drafted} accepted"
    print(f"{len(plain)} answers, {len(sys.argv) - 2} times the same")


main()
