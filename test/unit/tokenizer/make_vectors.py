#!/usr/bin/env python3
"""Writes test vectors for the tokenizers of runtime/tokenizer.

The oracle is the `tokenizers` library (Apache-2.0, Hugging Face): for many
combinations of components it trains nothing and downloads nothing, but builds
a small tokenizer, encodes random texts, decodes random ids, and records what
the library says.

    make_vectors.py OUT.json [--seed 1] [--count 8] [--file tokenizer.json ...]

With --file the vectors are for that file instead, which is referred to by its
path. TokenizerVectors in OracleTest.cpp reads the result; LLM_TOKENIZER_VECTORS
names further files for it.
"""
import argparse
import json
import random

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, trainers
from tokenizers import decoders as dec
from tokenizers import normalizers as norm
from tokenizers import pre_tokenizers as pre
from tokenizers import processors as post

CORPUS = [
    "the quick brown fox jumps over the lazy dog. It's the dog's day, isn't it?",
    "In 2024, 3.14159 and 42 were numbers; x=y+z; foo_bar(baz)!",
    "naïve café, straße, señor, İstanbul, Ελληνικά, Привет мир, 日本語のテスト",
    "multiple   spaces\tand\ttabs\n\nand newlines\r\n  end",
    "emoji 🙂🙂 👩‍👩‍👧 and hello hello hello world world",
    "नमस्ते ไทย 한국어 שלום مرحبا",
] * 3

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}"
         r"\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}"
         r"\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll"
         r"|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}"
        r"\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [
    (r"\p{N}{1,3}", "isolated"), (r"[一-龥぀-ゟ゠-ヿ]+", "isolated"),
    (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?"
     r"[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", "isolated")]


_trained = {}


def train(pre_tokenizer=None, normalizer=None, decoder=None, processor=None,
          added=(), trained_by=None, **bpe):
    """A tokenizer with these components. The model is trained with the
    pre-tokenizer `trained_by` and shared by all that ask for the same."""
    key = repr((str(trained_by), sorted(bpe.items())))
    if key not in _trained:
        _trained[key] = train_model(trained_by, bpe)
    tok = Tokenizer.from_str(_trained[key])
    if normalizer:
        tok.normalizer = normalizer
    if pre_tokenizer:
        tok.pre_tokenizer = pre_tokenizer
    if decoder:
        tok.decoder = decoder
    for token in added:
        if token.special:
            tok.add_special_tokens([token])
        else:
            tok.add_tokens([token])
    if processor:
        tok.post_processor = processor(tok)
    return tok


def train_model(pre_tokenizer, bpe):
    tok = Tokenizer(models.BPE(**bpe))
    tok.pre_tokenizer = pre_tokenizer or pre.WhitespaceSplit()
    args = dict(vocab_size=330, show_progress=False, min_frequency=2)
    if isinstance(tok.pre_tokenizer, pre.ByteLevel):
        args["initial_alphabet"] = pre.ByteLevel.alphabet()
    if isinstance(tok.pre_tokenizer, pre.Metaspace):
        args["vocab_size"] = 400
    args["special_tokens"] = [bpe["unk_token"]] if bpe.get("unk_token") else []
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if bpe.get(key):
            args[key] = bpe[key]
    if bpe.get("byte_fallback"):
        args["special_tokens"] += ["<0x%02X>" % b for b in range(256)]
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(**args))
    doc = json.loads(tok.to_str())
    # The trainer makes its special tokens added ones; bytes are not.
    doc["added_tokens"] = [t for t in doc["added_tokens"]
                           if not t["content"].startswith("<0x")]
    doc["pre_tokenizer"] = None
    return json.dumps(doc)


def tweak(tok, change):
    doc = json.loads(tok.to_str())
    change(doc)
    return Tokenizer.from_str(json.dumps(doc))


def byte_level(**kw):
    kw.setdefault("pre_tokenizer", pre.ByteLevel(add_prefix_space=False))
    return train(decoder=dec.ByteLevel(), trained_by=pre.ByteLevel(False), **kw)


def template(single, *names):
    def make(tok):
        return post.TemplateProcessing(
            single=single, special_tokens=[(n, tok.token_to_id(n)) for n in names])
    return make


LLAMA_DECODER = dec.Sequence([dec.Replace("▁", " "), dec.ByteFallback(),
                              dec.Fuse(), dec.Strip(" ", 1, 0)])
CHAT = [AddedToken("<|im_start|>", special=True, normalized=False),
        AddedToken("<|im_end|>", special=True, normalized=False)]
S = AddedToken("<s>", special=True, normalized=False)


def metaspace(scheme, split=True):
    return train(pre_tokenizer=pre.Metaspace(prepend_scheme=scheme, split=split),
                 decoder=dec.Metaspace(prepend_scheme=scheme), unk_token="<unk>",
                 byte_fallback=True, trained_by=pre.Metaspace(), added=CHAT)


def split(pattern, behavior, invert=False):
    return byte_level(pre_tokenizer=pre.Sequence(
        [pre.Split(pattern, behavior, invert),
         pre.ByteLevel(add_prefix_space=False, use_regex=False)]))


def builders():
    yield "gpt2", byte_level(added=[AddedToken("<|endoftext|>", special=True)])
    yield "byte-level-prefix-space", byte_level(
        pre_tokenizer=pre.ByteLevel(add_prefix_space=True), added=CHAT)
    yield "byte-level-no-regex", byte_level(
        pre_tokenizer=pre.ByteLevel(add_prefix_space=False, use_regex=False))
    yield "smollm2", byte_level(
        pre_tokenizer=pre.Sequence([pre.Digits(individual_digits=True),
                                    pre.ByteLevel(add_prefix_space=False)]),
        added=CHAT)
    for name, pattern in (("gpt4", GPT4), ("gpt4o", GPT4O), ("qwen2", QWEN)):
        yield name, tweak(byte_level(
            normalizer=norm.NFC(),
            pre_tokenizer=pre.Sequence([
                pre.Split(Regex(pattern), "isolated"),
                pre.ByteLevel(add_prefix_space=False, use_regex=False)]),
            added=CHAT + [AddedToken("<tool_call>", normalized=False)],
            processor=template("<|im_start|> $A", "<|im_start|>")),
            lambda d: d["model"].update(ignore_merges=name == "gpt4"))
    yield "deepseek", byte_level(pre_tokenizer=pre.Sequence(
        [pre.Split(Regex(p), b) for p, b in DEEPSEEK] +
        [pre.ByteLevel(add_prefix_space=False, use_regex=False)]))
    for behavior in ("removed", "isolated", "merged_with_previous",
                     "merged_with_next", "contiguous"):
        yield "split-" + behavior, split(Regex(r"[aeiou ]"), behavior)
        yield "split-inverted-" + behavior, split(Regex(r"\w+|\d"), behavior, True)
        yield "split-string-" + behavior, split("the", behavior)
        yield "punctuation-" + behavior, byte_level(pre_tokenizer=pre.Sequence(
            [pre.Punctuation(behavior), pre.ByteLevel(False, False)]))
    yield "regex-word", split(Regex(r"\w+"), "isolated")
    yield "regex-not-word", split(Regex(r"\W"), "removed")
    yield "regex-hex", split(Regex(r"\h+"), "isolated")
    yield "regex-lines", split(Regex(r"^.*$"), "isolated")
    yield "regex-dotall", split(Regex(r"(?m:q.*s)"), "isolated")
    yield "regex-interval", split(Regex(r"\p{N}{1,2}+|l{,2}o"), "isolated")
    yield "regex-intersection", split(Regex(r"[\p{L}&&[^\p{Han}]]+"), "isolated")
    yield "regex-empty", split(Regex(r"x*"), "isolated")
    yield "regex-posix", split(Regex(r"[[:punct:][:digit:]]+|[^[:alnum:]]"), "isolated")
    yield "regex-escapes", split(Regex(r"\u00e9|[\s\u65e5]|\x41"), "isolated")
    yield "digits", byte_level(pre_tokenizer=pre.Sequence(
        [pre.Digits(False), pre.ByteLevel(False, False)]))
    yield "whitespace", train(pre_tokenizer=pre.Whitespace(), unk_token="<unk>")
    yield "whitespace-fuse", train(pre_tokenizer=pre.Whitespace(),
                                   unk_token="<unk>", fuse_unk=True)
    yield "whitespace-split", train(pre_tokenizer=pre.WhitespaceSplit())
    yield "char-delimiter", train(pre_tokenizer=pre.CharDelimiterSplit("e"))
    yield "subword-prefix", train(pre_tokenizer=pre.Whitespace(),
                                  unk_token="<unk>",
                                  continuing_subword_prefix="##")
    yield "word-suffix", train(pre_tokenizer=pre.Whitespace(),
                               end_of_word_suffix="</w>")
    for scheme in ("always", "first", "never"):
        yield "metaspace-" + scheme, metaspace(scheme)
        yield "metaspace-whole-" + scheme, metaspace(scheme, False)
    yield "llama2", train(
        normalizer=norm.Sequence([norm.Prepend("▁"), norm.Replace(" ", "▁")]),
        decoder=LLAMA_DECODER, unk_token="<unk>", fuse_unk=True,
        byte_fallback=True, trained_by=pre.Metaspace(), added=[S] + CHAT,
        processor=template("<s> $A", "<s>"))
    yield "gemma", train(
        normalizer=norm.Replace(" ", "▁"),
        pre_tokenizer=pre.Split(" ", "merged_with_previous"),
        decoder=dec.Sequence([dec.Replace("▁", " "), dec.ByteFallback(),
                              dec.Fuse()]),
        unk_token="<unk>", fuse_unk=True, byte_fallback=True,
        trained_by=pre.Metaspace(), added=[S])
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield form.lower(), byte_level(normalizer=getattr(norm, form)())
    yield "lowercase", byte_level(normalizer=norm.Lowercase())
    yield "strip", byte_level(normalizer=norm.Strip(True, True))
    yield "strip-left", byte_level(normalizer=norm.Strip(True, False))
    yield "accents", byte_level(
        normalizer=norm.Sequence([norm.NFD(), norm.StripAccents()]))
    yield "replace-regex", byte_level(normalizer=norm.Replace(Regex(r"\s+"), " "))
    yield "byte-level-normalizer", train(
        normalizer=norm.ByteLevel(), decoder=dec.ByteLevel(),
        trained_by=pre.ByteLevel(False))
    yield "added-options", byte_level(added=[
        AddedToken("fox", single_word=True, normalized=False),
        AddedToken("<l>", lstrip=True, normalized=False),
        AddedToken("<r>", rstrip=True, special=True, normalized=False),
        AddedToken("<lr>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("hello", normalized=False),
        AddedToken("hello world", normalized=False),
        AddedToken("  ", normalized=False)])
    yield "added-normalized", byte_level(
        normalizer=norm.Lowercase(),
        added=[AddedToken("DOG", normalized=True),
               AddedToken("Fox", normalized=False),
               AddedToken("<end>", normalized=True, special=True)])
    yield "roberta", byte_level(added=[S, AddedToken("</s>", special=True)],
                                processor=lambda t: post.RobertaProcessing(
                                    ("</s>", t.token_to_id("</s>")),
                                    ("<s>", t.token_to_id("<s>"))))
    yield "processor-sequence", byte_level(
        added=[S] + CHAT,
        processor=lambda t: post.Sequence([
            post.ByteLevel(trim_offsets=False),
            template("<s> $A <|im_end|>", "<s>", "<|im_end|>")(t)]))
    yield "no-decoder", train(pre_tokenizer=pre.WhitespaceSplit())
    yield "strip-decoder", train(
        pre_tokenizer=pre.WhitespaceSplit(),
        decoder=dec.Sequence([dec.Fuse(), dec.Replace("the", "<>"),
                              dec.Replace(Regex("[ab]+"), "#")]))


PIECES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "the", "The", " the", "dog",
          "fox", "foxes", " fox ", "hello world", "hello", "DOG", "Fox", "<END>",
          "it's", "IT'S", "ISN'T", "'ſ", "'", "3.14159", "2024", "1234567", "½", "Ⅷ",
          "é", "e\u0301", "ﬁ", "Å", "İ", "ß", "Σ", "ς", "straße", "日本語", "🙂",
          "👩‍👩‍👧", "नमस्ते", "ไทย", "한국어", "\u1100\u1161\u11a8", "שלום", "Привет",
          "\u00a0", "\u3000", "\u2028", "\u200b", "\u180e", "\ufeff", "\x00", "\x1c", "\x7f",
          "\u0300\u0323", "a\u0323\u0307", "_", "foo_bar", "x=y+z;", "!!!", "…", "—", "«»",
          "<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|endoftext|>",
          "<tool_call>", "<l>", " <l>", "<r>  ", " <lr> ", "<0x41>", "▁", "▁the", "Ġ",
          "##", "ⓐ", "𝔘", "\U0001f1e9\U0001f1ea", "aaaaaaaaaaaaaaaaa", "{}", "[x]", "\\n",
          "\u05d0\u05bc", "²", "٣", "〇", "々", "ǅ", "\u202f", "\u0085", "q\nrs"]


def random_text(rng):
    parts = []
    for _ in range(rng.randint(0, 9)):
        roll = rng.random()
        if roll < 0.8:
            parts.append(rng.choice(PIECES))
        elif roll < 0.9:
            words = rng.choice(CORPUS).split(" ")
            parts.append(" ".join(rng.sample(words, min(3, len(words)))))
        else:
            # Assigned long ago, so that Unicode versions agree.
            ranges = [(0x20, 0x7e), (0xa1, 0x17f), (0x370, 0x3ff), (0x410, 0x44f),
                      (0x5d0, 0x5ea), (0x900, 0x939), (0x3041, 0x3096),
                      (0x4e00, 0x9fa5), (0xac00, 0xd7a3), (0x1f600, 0x1f640)]
            lo, hi = rng.choice(ranges)
            parts.append("".join(chr(rng.randint(lo, hi))
                                 for _ in range(rng.randint(1, 6))))
    text = "".join(parts)
    return "".join(c for c in text if c not in "\u0378\u0379\u0380\u0381\u0382\u0383"
                   "\u038b\u038d\u03a2")


def cases(tok, rng, count):
    out = []
    for _ in range(count):
        text = random_text(rng)
        tok.encode_special_tokens = False
        case = {"text": text, "ids": tok.encode(text).ids,
                "parsed": tok.encode(text, add_special_tokens=False).ids}
        tok.encode_special_tokens = True
        case["plain"] = tok.encode(text, add_special_tokens=False).ids
        tok.encode_special_tokens = False
        if rng.random() < 0.5:
            case["decode"] = case["ids"]
        else:
            size = tok.get_vocab_size()
            case["decode"] = [rng.randrange(size) for _ in range(rng.randint(0, 12))]
        case["shown"] = tok.decode(case["decode"], skip_special_tokens=False)
        case["skipped"] = tok.decode(case["decode"], skip_special_tokens=True)
        # What is left out is as the earlier one.
        for key, default in (("skipped", "shown"), ("decode", "ids"),
                             ("plain", "parsed"), ("parsed", "ids")):
            if case[key] == case[default]:
                del case[key]
        out.append(case)
    return out


def slim(doc):
    """Only what the tokenizer's meaning needs."""
    return {k: doc[k] for k in ("added_tokens", "normalizer", "pre_tokenizer",
                                "post_processor", "decoder", "model")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--file", nargs="*", default=[])
    args = parser.parse_args()
    entries, shared = [], []
    if args.file:
        named = [(path, Tokenizer.from_file(path)) for path in args.file]
    else:
        named = builders()
    for name, tok in named:
        rng = random.Random("%d %s" % (args.seed, name))
        entry = {"name": name, "cases": cases(tok, rng, args.count)}
        if args.file:
            entry["file"] = name
        else:
            doc = slim(json.loads(tok.to_str()))
            model = doc.pop("model")
            if model not in shared:
                shared.append(model)
            entry["tokenizer"] = doc
            entry["model"] = shared.index(model)
        entries.append(entry)
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump({"oracle": "tokenizers " + tokenizers.__version__,
                   "models": shared, "entries": entries}, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
