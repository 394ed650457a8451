"""Pairs for `bench memory --pairs` of what packages of others hold, on standard output.

    pip download --no-deps chatterbot-corpus==1.3.3 evals==3.0.1.post1
    python3 public_pairs.py chatterbot_corpus-*.whl > questions.tsv    # BSD
    python3 public_pairs.py evals-*.whl > abstracts.tsv                # MIT
    pip download --no-deps --no-binary :all: coremem==0.9.1
    python3 public_pairs.py coremem-*.tar.gz > longmemeval.tsv         # MIT

Of chatterbot-corpus: questions and answers of many hands, in English, where an answer says
something (trivia, science, computers, ...). Of evals: abstracts of articles, asked for by their
titles. Of coremem: what users said once and were asked for long after, in LongMemEval (Wu et al., 2025);
the questions that one message answers, or that one answered before a later one did; among all that
its users said to their assistants, or, with a number N behind the file's name, each Nth of that.
A pair whose answer or question is another one's, too, is left out.
"""

import collections
import json
import re
import sys
import tarfile
import zipfile

QUESTIONS = (
    "ai coding computers food health history literature money movies politics psychology science"
    " sports tech_support trivia"
).split()
ABSTRACTS = "evals/registry/data/abstract2title/samples.jsonl"
LONG_TALKS = "data/longmemeval_s_cleaned.json"
REPLACED_BY = " || "
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


def talks(samples, each):
    """What the user said that answers a question, and when; an older answer before the newer."""
    others, answers = {}, set()
    for sample in samples:
        sessions = zip(sample["haystack_dates"], sample["haystack_sessions"])
        turns = [
            (date, plain(turn["content"])[:CHARS_MAX], turn.get("has_answer"))
            for date, session in sessions
            for turn in session
            if turn["role"] == "user"
        ]
        others.update((text, None) for _, text, _ in turns)
        said = [text for _, text, answers_it in sorted(turns, key=lambda turn: turn[0]) if answers_it]
        answers.update(said)
        kind = sample["question_type"]
        if kind == "single-session-assistant" or sample["question_id"].endswith("_abs"):
            continue
        if len(said) == 1 or (len(said) == 2 and kind == "knowledge-update"):
            yield kind, REPLACED_BY.join(said), sample["question"]
    for text in [text for text in others if text not in answers][::each]:
        yield "other", text, ""


def pairs(name, each=1):
    if not name.endswith(".whl"):
        with tarfile.open(name) as package:
            for member in package:
                if member.name.endswith(LONG_TALKS):
                    yield from talks(json.load(package.extractfile(member)), each)
        return
    wheel = zipfile.ZipFile(name)
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
    found = [(k, plain(s), plain(a)) for k, s, a in pairs(sys.argv[1], *map(int, sys.argv[2:]))]
    said = collections.Counter(s.lower() for _, s, _ in set(found))
    asked = collections.Counter(a.lower() for _, _, a in set(found))
    for kind, text, question in dict.fromkeys(found):
        is_other = text and not question and kind == "other"
        if is_other or (text and question and said[text.lower()] == asked[question.lower()] == 1):
            print(kind, "en", text, question, sep="\t")


main()
