"""A server's tokenizer beside Hugging Face's: tokenizers of the forms that models have, trained on random
texts, give the same tokens for other random texts. Usage: tokenizers_test.py TOKENIZE (see tokenize.cpp).
BRAID_SEED=fresh or a number chooses the texts."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + LINES
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]*[{LOWER}]+{CONTRACTION}?|"
    rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]+[{LOWER}]*{CONTRACTION}?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + LINES
)
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
    r" ?[\p{P}\p{S}]+[\r\n]*|" + LINES
)
SPACE = "\u2581"


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(*steps, prefix=False, regex=False, **more):
    last = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)
    return {"pre": pre_tokenizers.Sequence([*steps, last]), "decoder": decoders.ByteLevel(), **more}


def spaced(**more):
    """As SentencePiece has it."""
    return {"decoder": decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]),
            "byte_fallback": True, "unk_token": "<unk>", "fuse_unk": True, **more}  # fmt: skip


FORMS = {
    "GPT-2": byte_level(regex=True),
    "RoBERTa": byte_level(regex=True, prefix=True),
    "Llama 3": byte_level(split(LLAMA3), ignore_merges=True, begin=True),
    "Qwen2": byte_level(split(QWEN2), normalizer=normalizers.NFC()),
    "GPT-OSS": byte_level(split(O200K)),
    "Phi-4": byte_level(split(O200K, "removed", True)),
    "DeepSeek-V3": byte_level(split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                              split(DEEPSEEK), begin=True),
    "StarCoder": byte_level(pre_tokenizers.Digits(individual_digits=True), regex=True),
    "Falcon": {"pre": pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
         pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")]),
        "decoder": decoders.ByteLevel()},
    "Llama 2": spaced(begin=True, normalizer=normalizers.Sequence(
        [normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])),
    "Mistral": spaced(begin=True, pre=pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
    "Gemma": spaced(begin=True, normalizer=normalizers.Replace(" ", SPACE),
                    pre=pre_tokenizers.Split(" ", "merged_with_previous")),
    "words": spaced(pre=pre_tokenizers.Metaspace(prepend_scheme="always")),
    "unknown": {"pre": pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Whitespace()]),
                "unk_token": "<unk>", "normalizer": normalizers.NFKD(), "decoder": decoders.Fuse()},
    "previous": byte_level(split("[aeiou ]+", "merged_with_previous", True), normalizer=normalizers.NFD()),
    "next": byte_level(split("[aeiou]", "merged_with_next"), normalizer=normalizers.NFKC()),
}  # fmt: skip
ADDED = [
    AddedToken("<|end|>", special=True, normalized=False),
    AddedToken("<|endoftext|>", special=True, normalized=False),
    AddedToken("<right>", special=True, normalized=False, rstrip=True),
    AddedToken("<left>", special=True, normalized=False, lstrip=True),
    AddedToken("<tool_call>", special=False, normalized=False),
]
ALPHABETS = [
    "abcdefghij", "ABCdefXYZ", "0123456789", "    ", " \t\n\r\x0b\x0c\x85\xa0\u2003\u3000\u2028", "'sStTlLreEvVmdD",
    ".,;:!?-_()[]{}<>|/\\\"`~@#$%^&*+=", "\u00e9\u00e0\u00fc\u00df\u0130\u0131\u017f", "\u0391\u03b1\u03c2\u0416\u0436\u0531",
    "\u4e2d\u6587\u3042\u30a2\u30fc\u3400", "\u1100\u1161\u11a8\ud55c\uae00", "\u0627\u0644\u064e\u05d0\u0301\u0323\u0e01\u0e33",
    "\u00b2\u00bd\u2460\u0664\u096a\u2167", "\U0001f600\U0001f468\u200d\U0001f469\ufe0f\U0001d400", "\u2581\u0120\u010a\u00ad\ufeff\ufb01\u212b",
]  # fmt: skip


def text_of(draw):
    parts = []
    for _ in range(draw.randrange(12)):
        if draw.random() < 0.12:
            parts.append(draw.choice(ADDED).content)
        alphabet = draw.choice(ALPHABETS[:7] if draw.random() < 0.6 else ALPHABETS)
        parts.append("".join(draw.choice(alphabet) for _ in range(draw.randrange(1, 7))))
        if draw.random() < 0.3:
            parts.append(draw.choice(["the cat", " it's", " WE'LL", "\n\n", "  \n ", " 12345", "..."]))
    return "".join(parts)


def build(form, draw):
    form = dict(form)
    begin, pre, decoder, normalizer = (form.pop(key, None) for key in ("begin", "pre", "decoder", "normalizer"))
    tokenizer = Tokenizer(models.BPE(**form))
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoder
    special = ["<s>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)] * form.get("byte_fallback", False)
    is_byte_level = isinstance(decoder, decoders.ByteLevel)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if is_byte_level else []
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, initial_alphabet=alphabet,
                                  limit_alphabet=300 if is_byte_level else 60, show_progress=False)  # fmt: skip
    tokenizer.train_from_iterator([text_of(draw) for _ in range(1500)], trainer)
    data = json.loads(tokenizer.to_str())
    # Bytes are plain tokens of the model.
    data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_tokens(ADDED)
    if begin:
        tokenizer.post_processor = TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    return tokenizer


def main():
    seed = os.environ.get("BRAID_SEED", "1")
    seed = random.SystemRandom().randrange(2**32) if seed == "fresh" else int(seed)
    print(f"seed {seed}")
    failed = 0
    for name, form in FORMS.items():
        draw = random.Random(f"{seed} {name}")
        tokenizer = build(form, draw)
        texts = [text_of(draw) for _ in range(3000)] + ["", " ", "\u2581"]
        texts += [part * (200_000 // len(part)) for part in ("a", " ", "1", "a ", "'s", "\n ", "\u0301", "<|end")]
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(str(pathlib.Path(folder, "tokenizer.json")))
            done = subprocess.run([sys.argv[1], folder], input="".join(json.dumps(t) + "\n" for t in texts),
                                  capture_output=True, text=True, timeout=120)  # fmt: skip
        if done.returncode != 0:
            print(f"{name}: {done.stderr.strip()}")
            failed += 1
            continue
        wrong = tokens = 0
        byte_level = isinstance(form["decoder"], decoders.ByteLevel)
        special = {t.content for t in ADDED if t.special}
        for text, line in zip(texts, done.stdout.splitlines(), strict=True):
            found, pieces = json.loads(line)
            expected = tokenizer.encode(text).ids
            tokens += len(expected)
            back = b"".join(map(bytes, pieces)).decode(errors="replace")
            good = found == expected and (not byte_level or back == tokenizer.decode(expected))
            if not good and (wrong := wrong + 1) <= 3:
                print(f"{name}: {text[:200]!r}:\n  found    {[tokenizer.id_to_token(t) for t in found[:99]]} {back[:200]!r}\n"
                      f"  expected {tokenizer.encode(text).tokens[:99]} {tokenizer.decode(expected)[:200]!r}")  # fmt: skip
        print(f"{name}: {len(texts)} texts, {tokens} tokens, {wrong} wrong")
        failed += wrong != 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
