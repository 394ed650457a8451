"""Pairs for `bench memory --pairs` of what packages of others hold, on standard output.

    pip download --no-deps chatterbot-corpus==1.3.3 evals==3.0.1.post1
    python3 public_pairs.py chatterbot_corpus-*.whl > questions.tsv    # BSD
    python3 public_pairs.py evals-*.whl > abstracts.tsv                # MIT

Of chatterbot-corpus: questions and answers of many hands, in English, where an answer says
something (trivia, science, computers, ...). Of evals: abstracts of articles, asked for by their
titles. A pair whose answer or question is another one's, too, is left out.
"""

import collections
import json
import re
import sys
import zipfile

QUESTIONS = (
    "ai coding computers food health history literature money movies politics psychology science"
    " sports tech_support trivia"
).split()
ABSTRACTS = "evals/registry/data/abstract2title/samples.jsonl"
CHARS_MAX = 1500


def conversations(text):
    """The first two turns of each conversation; its YAML has nothing but such lists."""
    turns = []
    for line in text.splitlines():
        if line.startswith("- - "):
            if len(turns) >= 2:
                yield turns[0], turns[1]
            turns = [line[4:]]
        elif turns and line.startswith("  - "):
            turns.append(line[4:])
        elif turns and line.startswith("    "):
            turns[-1] += " " + line.strip()
    if len(turns) >= 2:
        yield turns[0], turns[1]


def pairs(wheel):
    names = wheel.namelist()
    for kind in QUESTIONS:
        name = f"chatterbot_corpus/data/english/{kind}.yml"
        if name in names:
            for asked, said in conversations(wheel.read(name).decode()):
                yield kind, said, asked
    if ABSTRACTS in names:
        for line in wheel.read(ABSTRACTS).decode().splitlines():
            sample = json.loads(line)
            titles = sample["ideal"]
            title = titles if isinstance(titles, str) else titles[0]
            yield "abstract", sample["input"][-1]["content"][:CHARS_MAX], title


def plain(text):
    return re.sub(r"\s+", " ", text).strip().strip("'\"")


def main():
    found = [(k, plain(s), plain(a)) for k, s, a in pairs(zipfile.ZipFile(sys.argv[1]))]
    said = collections.Counter(s.lower() for _, s, _ in set(found))
    asked = collections.Counter(a.lower() for _, _, a in set(found))
    for kind, text, question in dict.fromkeys(found):
        if text and question and said[text.lower()] == asked[question.lower()] == 1:
            print(kind, "en", text, question, sep="\t")


main()
