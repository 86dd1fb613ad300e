"""Checks the examples in the reference of the dialects.

Each op, attribute and type has an example that names it, and every example
parses and verifies: operands that an example leaves open become arguments of a
function, of the types that the example itself gives them.

Usage: check_examples.py LLM-OPT PAGE.md...
"""

import re
import subprocess
import sys

# What examples may use without saying it.
PRELUDE = """\
#g = #kv.group<layers = 30, kv_heads = 3, planes = [\
#kv.plane<"k", f32, [3, 64], token>, #kv.plane<"v", f32, [3, 64], token>], \
page_size = 64, keys_rotated = true, window = 0>
"""
TARGET = """\
func.func private @target(!kv.step, !kv.cache<#g>) \
-> (tensor<?x512xf32>, !kv.cache<#g>)
"""
HEADING = re.compile(r"^### (?:`(?P<op>[\w.]+)` \(|(?P<kind>\w+(?:Attr|Type))$)")
SPELLING = re.compile(r"(?:Syntax: `)?([#!]\w+\.\w+)")
MISMATCH = re.compile(
    r"use of value '(%\w+)' expects different type than prior uses: "
    r"'(.+)' vs 'none'$"
)


def read(path):
    """The examples of a page: (where, what they must name, text)."""
    title, syntax, block, found, missing = None, None, None, [], None
    for number, line in enumerate(open(path), 1):
        heading = HEADING.match(line)
        if block is None and line.startswith(("## ", "### ")):
            if missing:
                sys.exit(f"{path}: {missing} has no example")
            title = missing = syntax = None
            if heading:
                title = missing = heading["op"] or heading["kind"]
                syntax = heading["op"]
        elif line == "```mlir\n":
            block, start = [], number + 1
        elif line == "```\n" and block is not None:
            text = "".join(block)
            if title and (syntax or "") not in text:
                sys.exit(f"{path}:{start}: an example of {title} without it")
            found.append((f"{path}:{start}", text))
            block = missing = None
        elif block is not None:
            block.append(line)
        # Attributes and types show their spelling under "Syntax:".
        elif title and syntax is None and (spelt := SPELLING.match(line)):
            syntax = spelt[1]
    if missing:
        sys.exit(f"{path}: {missing} has no example")
    return found


class Example:
    """An example as a module that stands alone."""

    def __init__(self, where, text):
        self.where, self.types = where, {}
        statements = []
        for line in text.splitlines(keepends=True):
            if statements and re.match(r"[\s}^:]", line):
                statements[-1] += line
            else:
                statements.append(line)
        is_value = lambda s: s[0] in "#!" and not re.match(r"[#!]\w+ = ", s)
        is_symbol = lambda s: re.match(r"[\w.]+ @", s) or re.match(r"[#!]\w+ = ", s)
        self.values = [s.strip() for s in statements if is_value(s)]
        self.symbols = [s for s in statements if not is_value(s) and is_symbol(s)]
        self.body = [s for s in statements if not is_value(s) and not is_symbol(s)]
        defined = set()
        for statement in self.body:
            results, equals, rest = statement.partition(" = ")
            names = re.findall(r"%\w+", results) if equals else []
            for name in re.findall(r"%\w+", rest if names else statement):
                if name not in defined:
                    self.types.setdefault(name, "none")
            defined.update(names)

    def module(self):
        out = PRELUDE + "".join(self.symbols)
        if "func.call @target" in out:
            out += TARGET
        for i, value in enumerate(self.values):
            out += f"module attributes {{test.value = {value}}} {{}}\n"
        arguments = ", ".join(f"{n}: {t}" for n, t in self.types.items())
        out += f"func.func @example({arguments}) {{\n{''.join(self.body)}return\n}}\n"
        return out


def check(tool, examples):
    """Gives every open operand the type that the parser asks for, one for each
    example and round, then reports what errors remain."""
    while True:
        texts = [example.module() for example in examples]
        first, starts = 1, []
        for text in texts:
            starts.append(first)
            first += text.count("\n") + 1
        run = subprocess.run(
            [tool, "--split-input-file"],
            input="// -----\n".join(texts),
            capture_output=True,
            text=True,
        )
        learned, errors = False, []
        for line in run.stderr.splitlines():
            at = re.match(r"<stdin>:(\d+):\d+: error: (.*)", line)
            if not at:
                continue
            index = max(i for i, s in enumerate(starts) if s <= int(at[1]))
            example = examples[index]
            asks = MISMATCH.match(at[2])
            if asks and example.types.get(asks[1]) == "none":
                example.types[asks[1]] = asks[2]
                learned = True
            else:
                errors.append(f"{example.where}: {at[2]}\n{texts[index]}")
        if learned:
            continue
        if run.returncode != 0 and not errors:
            errors.append(run.stderr or f"{tool} ended with {run.returncode}")
        return errors


def main():
    tool, *pages = sys.argv[1:]
    examples = [Example(*found) for page in pages for found in read(page)]
    errors = check(tool, examples)
    print("\n".join(errors), file=sys.stderr)
    print(f"{len(examples)} examples, {len(errors)} errors")
    sys.exit(1 if errors else 0)


main()
