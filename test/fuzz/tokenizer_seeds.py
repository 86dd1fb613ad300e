#!/usr/bin/env python3
"""Writes seed inputs for fuzz_tokenizer: tokenizer_seeds.py OUTDIR

They come from the test vectors of the tokenizers, so they need no downloads.
"""
import json
import struct
import sys
from pathlib import Path

UNIT = Path(__file__).resolve().parent.parent / "unit" / "tokenizer"


def small(model):
    """A model with fewer pieces, so that mutations reach its components."""
    vocab = {k: v for k, v in model["vocab"].items() if len(k) <= 2 or k.startswith("<")}
    merges = [m for m in model["merges"]
              if all(p in vocab for p in (m[0], m[1], m[0] + m[1]))]
    return dict(model, vocab=vocab, merges=merges[:40])


def tables(model):
    """What BPETables::pack gives, of merges in their newer spelling."""
    pieces = sorted((identity, piece.encode()) for piece, identity in model["vocab"].items())
    ids = {piece: identity for identity, piece in pieces}
    merges = dict.fromkeys((ids[left.encode()], ids[right.encode()], ids[(left + right).encode()])
                           for left, right in (m.split(" ") if isinstance(m, str) else m for m in model["merges"])
                           if (left + right) in model["vocab"])
    ends, text = [], b""
    for _, piece in pieces:
        text += piece
        ends.append(len(text))
    words = [len(pieces), len(merges), *(identity for identity, _ in pieces), *ends]
    words += [identity for merge in merges for identity in merge]
    return struct.pack("<%dI" % len(words), *words) + text


def sealed(tokenizer, model):
    rest = {key: value for key, value in model.items() if key not in ("vocab", "merges")}
    parts = [b'{"eos":[0]}', json.dumps(dict(tokenizer, model=dict(rest, type="BPE"))).encode(), tables(model)]
    return b"LLMTOK02" + struct.pack("<IIQQ", 1, *map(len, parts)) + b"".join(parts)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    document = json.loads((UNIT / "vectors.json").read_text(encoding="utf-8"))
    for entry in document["entries"]:
        tokenizer = dict(entry["tokenizer"], model=small(document["models"][entry["model"]]))
        text = max((c["text"] for c in entry["cases"]), key=len)
        (out / ("json-" + entry["name"])).write_bytes(
            b"\0" + json.dumps(tokenizer).encode() + b"\0" + text.encode())
        (out / ("sealed-" + entry["name"])).write_bytes(b"\4" + sealed(entry["tokenizer"], tokenizer["model"]))
        (out / ("tables-" + entry["name"])).write_bytes(b"\5" + tables(tokenizer["model"]))
    pieces = [b"<unk>", b"\n<s>\n", b"\n</s>\n"] + [b"<0x%02X>" % i for i in range(256)]
    pieces += [b" ", b"a", b"b", b"ab", b" a", b" ab", "é".encode()]
    bin_file = struct.pack("<i", 7) + b"".join(
        struct.pack("<fi", -i, len(p)) + p for i, p in enumerate(pieces))
    (out / "bin").write_bytes(b"\1" + bin_file)
    chat = json.loads((UNIT / "chat_vectors.json").read_text(encoding="utf-8"))
    for i, entry in enumerate(chat["entries"]):
        (out / ("chat-%d" % i)).write_bytes(b"\2" + entry["template"].encode())
    for i, pattern in enumerate((r"(?i:'s|'t)|\p{N}{1,3}+|\s+(?!\S)|[\w&&[^\p{Han}]]+",
                                 r"(a+)+b", r"\h\W[[:punct:]]|x{,3}(?m:.)*")):
        (out / ("regex-%d" % i)).write_bytes(b"\3" + pattern.encode() + b"\0aaa aa b 12 x")


if __name__ == "__main__":
    main()
