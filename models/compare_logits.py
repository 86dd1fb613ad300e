#!/usr/bin/env python3
"""Compares logits with a reference, position by position.

    compare_logits.py REF.npy OURS.npy [--rtol 1e-3]

Both are [positions, vocabulary]. Position p passes when
max|ours - ref| <= rtol · max|ref| over its row. Greedy choices must be equal,
except where the reference's own lead of its first choice over ours is within
that bound. Prints one JSON object; exits with 1 when a position fails.
"""

import argparse
import json
import sys

import numpy as np


def compare(reference, ours, rtol):
    """The figures as a dict; "pass" is the verdict."""
    reference, ours = reference.astype(np.float64), ours.astype(np.float64)
    rows = np.arange(len(reference))
    bound = rtol * np.abs(reference).max(axis=-1)
    # A difference that is not a number must not pass as small.
    difference = np.nan_to_num(np.abs(ours - reference).max(axis=-1), nan=np.inf)
    relative = difference / np.maximum(np.abs(reference).max(axis=-1), np.finfo(np.float64).tiny)
    ref_choice, our_choice = reference.argmax(axis=-1), ours.argmax(axis=-1)
    lead = reference[rows, ref_choice] - reference[rows, our_choice]
    excused = (ref_choice != our_choice) & (lead <= bound)
    disagreed = (ref_choice != our_choice) & ~excused
    failed = difference > bound
    worst = int(relative.argmax())
    return {
        "pass": not (failed.any() or disagreed.any()),
        "positions": len(reference),
        "rtol": rtol,
        "worst_position": worst,
        "worst_relative_difference": float(relative[worst]),
        "mean_relative_difference": float(relative.mean()),
        "positions_over_bound": int(failed.sum()),
        "greedy_equal": int((ref_choice == our_choice).sum()),
        "greedy_excused": np.flatnonzero(excused).tolist(),
        "greedy_disagreed": np.flatnonzero(disagreed).tolist(),
    }


def main():
    parser = argparse.ArgumentParser(description="Compares logits with a reference.")
    parser.add_argument("reference", metavar="REF.npy")
    parser.add_argument("ours", metavar="OURS.npy")
    parser.add_argument("--rtol", type=float, default=1e-3)
    args = parser.parse_args()
    try:
        reference = np.load(args.reference, mmap_mode="r", allow_pickle=False)
        ours = np.load(args.ours, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        sys.exit(f"compare_logits.py: error: {error}")
    if reference.ndim != 2 or reference.shape != ours.shape or not reference.size:
        sys.exit(f"compare_logits.py: error: {args.reference} is {list(reference.shape)} and {args.ours} is "
                 f"{list(ours.shape)}; both must be the same [positions, vocabulary]")
    result = compare(reference, ours, args.rtol)
    print(json.dumps(result))
    sys.exit(0 if result["pass"] else 1)


if __name__ == "__main__":
    main()
