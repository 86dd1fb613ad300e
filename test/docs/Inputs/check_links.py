#!/usr/bin/env python3
"""Fails where a relative link or a quoted path in a Markdown file leads nowhere.

    check_links.py ROOT FILE...

Links count from their file. Text in back quotes counts from ROOT where it looks
like a path into the sources: it begins with one of their directories, has a slash
and no blank, placeholder or wildcard.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
QUOTED = re.compile(r"`((?:cmake|dialects|docs|examples|include|lib|models|passes|runtime|scripts|test|tools)/"
                    r"[\w./-]+)`")


def main():
    root, errors, links = Path(sys.argv[1]), 0, 0
    for name in sys.argv[2:]:
        text = Path(name).read_text()
        targets = [(link, Path(name).parent / link) for link in LINK.findall(text) if "://" not in link]
        targets += [(path, root / path) for path in QUOTED.findall(text)]
        for shown, target in targets:
            links += 1
            if not target.exists():
                print(f"{name}: error: '{shown}' is not there", file=sys.stderr)
                errors += 1
    print(f"{links} links")
    return 1 if errors or not links else 0


if __name__ == "__main__":
    sys.exit(main())
