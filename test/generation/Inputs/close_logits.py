"""Prints how far logits are from the first file's: their root mean square
difference as a part of the deviation of the first.

    close_logits.py REFERENCE.npy LIMIT OTHER.npy [LIMIT OTHER.npy]...

Fails where that is above LIMIT, or where nothing differs.
"""

import sys

import numpy as np


def main():
    reference = np.load(sys.argv[1])
    for limit, name in zip(sys.argv[2::2], sys.argv[3::2]):
        difference = np.sqrt(((np.load(name) - reference) ** 2).mean()) / reference.std()
        if not 0 < difference <= float(limit):
            sys.exit(f"{name}: {difference:.4f} is not in (0, {limit}]")
    print("close enough")


main()
