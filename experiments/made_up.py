"""Made-up reviews with known opinion words, for runs without any data: a folder like the real one.

Sentences of fillers with opinion words of one class, now and then one of the other, so that a
small model learns them in seconds. The consensus of two made-up annotators is every opinion word
of the review's class.
"""

import csv
import json
from pathlib import Path

import numpy as np
from numpy.random import Generator

GOOD = "wonderful great moving funny brilliant superb charming perfect".split()
BAD = "awful boring dull terrible weak annoying silly worst".split()
THINGS = "film plot cast music story ending script acting camera dialogue hero scene".split()
FILLERS = (
    "I saw the {thing} on a rainy evening with my sister.",
    "The {thing} is {word}, and the {other} is {word} too.",
    "What a {word} {thing} this is!",
    "It lasts two hours and is set in a small town by the sea.",
    "I found the {thing} rather {word}.",
    "Everybody talks about the {thing}, which is {word}.",
    "The {other} comes late, as in the book.",
    "My friends thought the {thing} was {word}.",
)


def folder(path: Path, *, n_reviews: int, n_marked: int, seed: int = 0) -> Path:
    """imdb/{train,test}.jsonl and yelp_hat/hat_{50,100}_words.csv; made once."""
    if (path / "done").exists():
        return path
    rng = np.random.default_rng(seed)
    for name in ("imdb", "yelp_hat"):
        (path / name).mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        lines = [
            json.dumps(dict(zip(("text", "label"), review(rng), strict=True)))
            for _ in range(n_reviews)
        ]
        (path / "imdb" / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for part in ("hat_50_words", "hat_100_words"):
        with (path / "yelp_hat" / f"{part}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["Input.label", "Input.text", "Answer.Q1Answer", "Answer.html_output"])
            for _ in range(n_marked):
                text, label = review(rng)
                row = (label, text, "yes" if label else "no", marked(text, label))
                writer.writerows([row, row])
    (path / "done").touch()
    return path


def review(rng: Generator) -> tuple[str, int]:
    label = int(rng.random() < 0.5)
    words, others = (GOOD, BAD) if label else (BAD, GOOD)
    sentences = []
    for pattern in rng.choice(FILLERS, size=int(rng.integers(3, 6)), replace=False):
        thing, other = rng.choice(THINGS, size=2, replace=False)
        word = rng.choice(others if rng.random() < 0.15 else words)
        sentences.append(str(pattern).format(thing=thing, other=other, word=word))
    return " ".join(sentences), label


def marked(text: str, label: int) -> str:
    """The page of an annotator who marks the opinion words of the class."""
    words = GOOD if label else BAD
    spans = []
    for word in text.split():
        active = ' class="active"' if word.strip(".,!") in words else ""
        spans.append(f"<span{active}>{word}</span>")
    return " ".join(spans)
