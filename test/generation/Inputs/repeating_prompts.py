"""Writes requests, as JSON lines, whose texts repeat themselves more or less.

    repeating_prompts.py COUNT MAX_TOKENS [--sampled] [--ids VOCABULARY]

--sampled: with temperatures, filters, penalties, seeds and several continuations.
--ids: token ids in place of texts.
"""

import argparse
import json
import random

NAMES = ["Lily", "Tom", "Mia", "Ben", "Sue"]
THINGS = ["ball", "cat", "red car", "tree", "cake", "big dog"]
SENTENCES = [
    "Once upon a time, there was a little girl named {name}.",
    "{name} liked to play with the {thing}.",
    "One day, {name} saw a {thing} in the park.",
    '"Can I have the {thing}?" asked {name}.',
    "{name} was very happy and said thank you.",
    "The {thing} was gone, and {name} was sad.",
]


def text(rng, repeats):
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    lines = [rng.choice(SENTENCES).format(name=name, thing=thing) for _ in range(3)]
    return " ".join(lines * repeats)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("max_tokens", type=int)
    parser.add_argument("--sampled", action="store_true")
    parser.add_argument("--ids", type=int)
    options = parser.parse_args()
    for i in range(options.count):
        rng = random.Random(i)
        repeats = 1 + i % 3
        request = {"max_tokens": options.max_tokens - i % 5}
        if options.ids:
            ids = [rng.randrange(options.ids) for _ in range(12)]
            request["prompt_ids"] = ids * repeats
        else:
            request["prompt"] = text(rng, repeats)
        if options.sampled:
            request |= {"temperature": 0.3 + 0.2 * (i % 4), "seed": i, "n": 1 + i % 2}
            request |= [{}, {"top_k": 5}, {"top_p": 0.8}, {"min_p": 0.1}][i // 2 % 4]
            if i % 3 == 0:
                request["repetition_penalty"] = 1.1
        print(json.dumps(request))


main()
