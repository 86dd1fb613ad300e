#!/usr/bin/env python3
"""Holds a guide to the files that it quotes and the commands that it gives.

    guide.py check GUIDE ROOT     every block that follows a line "`FILE`:" stands
                                  in ROOT/FILE as it is, and every line of a
                                  source file that is quoted is quoted, its
                                  licence header aside
    guide.py commands GUIDE       prints the blocks in the language sh
"""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^(?:`(?P<file>[^`]+)`:\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)
# Tests are quoted in part.
WHOLE = (".cpp", ".td", ".txt")


def without_header(text):
    """`text` without the comment that it begins with, where that is a header."""
    if not text.startswith("//===-"):
        return text
    end = text.index("//===---", 1)
    return text[text.index("\n", end) + 1:]


def check(guide, root):
    quotes = {}
    for block in BLOCK.finditer(guide.read_text()):
        if block["file"]:
            quotes.setdefault(block["file"], []).append(block["text"])
    errors = []
    if not quotes:
        errors.append("no file is quoted")
    for name, texts in quotes.items():
        source = (root / name).read_text()
        for text in texts:
            # Whole lines: a quote neither begins nor ends within one.
            if "\n" + text not in "\n" + source:
                errors.append(f"{name} does not contain the block that begins with\n  "
                              + text.split("\n")[0])
        if name.endswith(WHOLE):
            quoted = {line for text in texts for line in text.split("\n")}
            errors += [f"{name}: a line is not quoted:\n  {line}"
                       for line in without_header(source).split("\n") if line.strip() and line not in quoted]
    for error in errors:
        print(f"{guide}: error: {error}", file=sys.stderr)
    return 1 if errors else 0


def main():
    if sys.argv[1] == "check":
        return check(Path(sys.argv[2]), Path(sys.argv[3]))
    for block in BLOCK.finditer(Path(sys.argv[2]).read_text()):
        if block["language"] == "sh":
            print(block["text"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
