#!/usr/bin/env python3
"""Scores pages by the words of a topic, for quality.command.

    command = ["python3", "score-keywords.py", "socket", "asyncio", "select"]

Each line on stdin is a page as JSON; each line on stdout is {"id": ..., "quality": ...}. A page
without any of the words gets 0.1. More of its words and a denser text get more, 5 at most.
"""
import json
import re
import sys

TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
WORD = re.compile(r"\w+")


def quality(text, topic):
    words = WORD.findall(TAGS.sub(" ", text).lower())
    hits = [word for word in words if word in topic]
    density = len(hits) / max(len(words), 50)
    return round(min(5, 0.1 + len(set(hits)) / len(topic) + 50 * density), 3)


def main():
    topic = {word.lower() for word in sys.argv[1:]}
    if not topic:
        sys.exit("usage: score-keywords.py WORD...")
    for line in sys.stdin:
        page = json.loads(line)
        score = {"id": page["id"], "quality": quality(page["text"], topic)}
        print(json.dumps(score), flush=True)


if __name__ == "__main__":
    main()
