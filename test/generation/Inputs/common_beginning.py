"""Writes requests, as JSON lines, half of which begin with the same sentences."""

import json

BEGINNING = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside "
    "in the park with her big red ball. One day, she saw a cat under the big tree. "
)
ENDINGS = ["The cat", "Her mom said", "It was sunny", "She ran", "He"]
for i in range(40):
    prompt = (BEGINNING if i % 2 else "") + ENDINGS[i % 5]
    request = {"prompt": prompt, "max_tokens": 10 + 7 * (i % 8)}
    if i % 3 == 0:
        request |= {"temperature": 0.8, "seed": i}
    print(json.dumps(request))
