"""The tokenizer of a GGUF file in the form of Hugging Face's tokenizer.json.

GGUF keeps the vocabulary and leaves the algorithm to the reader. Two kinds are
known here: byte-level BPE ("gpt2", its pre-tokenizer named by
tokenizer.ggml.pre) and SentencePiece BPE with byte fallback ("llama").
"""

# tokenizer.ggml.token_type
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DIGITS_THEN_BYTE_LEVEL = {
    "type": "Sequence",
    "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL],
}

# By tokenizer.ggml.pre: the pre-tokenizer's description in tokenizer.json.
PRE_TOKENIZERS = {
    "gpt-2": BYTE_LEVEL,
    "smollm": DIGITS_THEN_BYTE_LEVEL,
    "starcoder": DIGITS_THEN_BYTE_LEVEL,
    "refact": DIGITS_THEN_BYTE_LEVEL,
}

SPACE = "\u2581"


class UnsupportedTokenizer(Exception):
    """The GGUF file holds a tokenizer that this exporter cannot express."""


class GgufTokenizer:
    """The tokenizer metadata of a GGUF file.

    `metadata(key)` returns the value of a tokenizer.* key, or None.
    """

    def __init__(self, metadata):
        self._metadata = metadata
        self.kind = self._get("model")
        self.tokens = self._get("tokens")
        self.types = self._get("token_type")
        if not self.tokens or self.kind is None:
            raise UnsupportedTokenizer("the file has no tokenizer")
        if self.types is None:
            self.types = [NORMAL] * len(self.tokens)
        if len(self.types) != len(self.tokens):
            raise UnsupportedTokenizer(f"{len(self.tokens)} tokens, but {len(self.types)} token types")
        if len(set(self.tokens)) != len(self.tokens):
            raise UnsupportedTokenizer("the vocabulary holds a token twice")
        self.bos_id = self._token_id("bos")
        self.eos_id = self._token_id("eos")
        self.unknown_id = self._token_id("unknown")
        self.padding_id = self._token_id("padding")
        # llama.cpp's defaults where the keys are absent.
        self.adds_bos = self._get("add_bos_token", self.kind == "llama") and self.bos_id is not None
        self.adds_space = self._get("add_space_prefix", self.kind == "llama")
        self.chat_template = metadata("tokenizer.chat_template")

    def stop_ids(self):
        """The end-of-sequence id, and end-of-turn ids that chat models add."""
        ids = [self.eos_id, self._token_id("eot"), self._token_id("eom")]
        names = {token: i for i, token in enumerate(self.tokens)}
        for name in ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>"):
            if self.types[names.get(name, 0)] == CONTROL:
                ids.append(names.get(name))
        return sorted({i for i in ids if i is not None})

    def tokenizer_json(self):
        """tokenizer.json as a dict."""
        if self.kind == "gpt2":
            parts = self._byte_level()
        elif self.kind == "llama":
            parts = self._sentencepiece()
        else:
            raise UnsupportedTokenizer(
                f"tokenizer.ggml.model is '{self.kind}'; supported are 'gpt2' and 'llama'")
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": self._added_tokens(),
            "normalizer": None,
            "pre_tokenizer": None,
            "post_processor": self._bos_template() if self.adds_bos else None,
        } | parts

    def tokenizer_config(self, context_length):
        """tokenizer_config.json as a dict."""
        config = {
            "add_bos_token": bool(self.adds_bos),
            "add_prefix_space": bool(self.adds_space),
            "clean_up_tokenization_spaces": False,
            "model_max_length": context_length,
            "tokenizer_class": "GPT2Tokenizer" if self.kind == "gpt2" else "LlamaTokenizer",
        } | self.special_tokens()
        if self.chat_template:
            config["chat_template"] = self.chat_template
        return config

    def special_tokens(self):
        """special_tokens_map.json as a dict."""
        ids = {"bos_token": self.bos_id, "eos_token": self.eos_id,
               "unk_token": self.unknown_id, "pad_token": self.padding_id}
        return {name: self.tokens[i] for name, i in ids.items() if i is not None}

    def _get(self, key, default=None):
        value = self._metadata(f"tokenizer.ggml.{key}")
        return default if value is None else value

    def _token_id(self, name):
        token = self._get(f"{name}_token_id")
        if token is not None and not 0 <= token < len(self.tokens):
            raise UnsupportedTokenizer(f"tokenizer.ggml.{name}_token_id is {token}, the vocabulary has "
                                       f"{len(self.tokens)} tokens")
        return token

    def _added_tokens(self):
        """Tokens matched in the text before the model runs."""
        special = {i for i, kind in enumerate(self.types) if kind in (CONTROL, UNKNOWN)}
        return [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                 "normalized": False, "special": i in special}
                for i, token in enumerate(self.tokens) if i in special or self.types[i] == USER_DEFINED]

    def _bos_template(self):
        bos = self.tokens[self.bos_id]
        first = {"SpecialToken": {"id": bos, "type_id": 0}}
        return {
            "type": "TemplateProcessing",
            "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {bos: {"id": bos, "ids": [self.bos_id], "tokens": [bos]}},
        }

    def _byte_level(self):
        pre = self._get("pre")
        if pre not in PRE_TOKENIZERS:
            raise UnsupportedTokenizer(f"tokenizer.ggml.pre is '{pre}'; supported are {sorted(PRE_TOKENIZERS)}")
        merges = [merge.split(" ") for merge in self._get("merges", [])]
        return {
            "pre_tokenizer": PRE_TOKENIZERS[pre],
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": self._bpe(merges, byte_fallback=False, fuse_unk=False, unk_token=None),
        }

    def _sentencepiece(self):
        unknown = self.tokens[self.unknown_id] if self.unknown_id is not None else None
        normalizers = [{"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]
        decoders = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                    {"type": "ByteFallback"}, {"type": "Fuse"}]
        if self.adds_space:
            normalizers.insert(0, {"type": "Prepend", "prepend": SPACE})
            decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
        return {
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "decoder": {"type": "Sequence", "decoders": decoders},
            "model": self._bpe(self._merges_from_scores(), byte_fallback=True, fuse_unk=True, unk_token=unknown),
        }

    def _bpe(self, merges, byte_fallback, fuse_unk, unk_token):
        return {
            "type": "BPE",
            "dropout": None,
            "unk_token": unk_token,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": fuse_unk,
            "byte_fallback": byte_fallback,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(self.tokens)},
            "merges": merges,
        }

    def _merges_from_scores(self):
        """The merges that SentencePiece would make, the best first.

        SentencePiece joins the neighbours whose union scores highest, whatever
        the two parts are; a ranked list of pairs says the same when every split
        of a piece into two pieces is in it, at the rank of the union.
        """
        scores = self._get("scores")
        if scores is None or len(scores) != len(self.tokens):
            raise UnsupportedTokenizer("tokenizer.ggml.scores is missing, or not one per token")
        rank = {token: (-scores[i], i) for i, token in enumerate(self.tokens) if self.types[i] == NORMAL}
        merges = []
        for union in sorted(rank, key=rank.get):
            splits = [(union[:i], union[i:]) for i in range(1, len(union))]
            splits = [pair for pair in splits if pair[0] in rank and pair[1] in rank]
            merges += [list(pair) for pair in sorted(splits, key=lambda pair: (rank[pair[0]], rank[pair[1]]))]
        return merges
