#!/usr/bin/env python3
"""Scores pages by a classifier that learns from examples, for quality.command.

    command = [".venv/bin/python", "score-classifier.py", "score-examples.tsv"]

It needs scikit-learn: python3 -m venv .venv && .venv/bin/pip install scikit-learn

Each line of the examples is "wanted" or "other", a tab, and a text, or "@" and the name of a page
(HTML). A few dozen of each kind are enough to begin with. The quality of a page is the probability
that it is wanted, divided by --share, the share of wanted pages that you expect: so the mean is
about 1. --list FILE scores the pages that are named in FILE, one a line, instead: to see what the
classifier has learnt before a crawl depends on it.
"""
import argparse
import json
import os
import re
import sys

from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

NOISE = re.compile(r"<(script|style|nav)\b.*?</\1\s*>|<[^>]*>|&\w+;", re.DOTALL | re.IGNORECASE)


def words_of(html):
    return NOISE.sub(" ", html)


def text_of(example):
    if not example.startswith("@"):
        return example
    with open(example[1:], encoding="utf-8", errors="replace") as page:
        return words_of(page.read())


def trained(path):
    labels, texts = [], []
    with open(path, encoding="utf-8") as examples:
        for number, line in enumerate(examples, 1):
            label, tab, text = line.rstrip("\n").partition("\t")
            if label.startswith("#") or not line.strip():
                continue
            if label not in ("wanted", "other") or not tab:
                sys.exit(f"{path}:{number}: write wanted or other, a tab, and a text or @page")
            labels.append(label == "wanted")
            texts.append(text_of(text))
    if len(set(labels)) < 2:
        sys.exit(f"{path}: give examples of both kinds")
    vectors = HashingVectorizer(n_features=2**18, alternate_sign=False, stop_words="english")
    learner = SGDClassifier(loss="log_loss", alpha=1e-5, class_weight="balanced", random_state=1)
    return make_pipeline(vectors, learner).fit(texts, labels)


def batches():
    """Yields the pages that have arrived, as many as there are."""
    begun = b""
    while piece := os.read(0, 1 << 20):
        *lines, begun = (begun + piece).split(b"\n")
        if lines:
            yield [json.loads(line) for line in lines]


def main():
    options = argparse.ArgumentParser(description="Scores pages by examples.")
    options.add_argument("examples")
    options.add_argument("--share", type=float, default=0.2)
    options.add_argument("--list")
    options = options.parse_args()
    model = trained(options.examples)

    def qualities(texts):
        return [round(float(row[1]) / options.share, 4) for row in model.predict_proba(texts)]

    if options.list:
        with open(options.list, encoding="utf-8") as names:
            names = names.read().split()
        for quality, name in sorted(zip(qualities([text_of("@" + n) for n in names]), names)):
            print(f"{quality:8.4f} {name}")
        return
    for pages in batches():
        found = qualities([words_of(page["text"]) for page in pages])
        answers = ({"id": page["id"], "quality": one} for page, one in zip(pages, found))
        print("\n".join(map(json.dumps, answers)), flush=True)


if __name__ == "__main__":
    main()
