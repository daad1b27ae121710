"""How many of the strongest pairs of a text `e.interactions` finds.

    python -m benchmarks.pairs [--texts 10] [--queries 200] [--method slalom] [--model FOLDER]
        [--data REVIEWS.jsonl.gz --words 16-26] [--out ROWS.json]

The truth: the second difference of every pair of units of short texts, all asked once. Of the
20 strongest of all texts together, and of the ten strongest of each, how many are among the
pairs that a search within its default budget lists. The texts: ten sentences of 11 to 15 words,
or the first sentences of reviews that have so many words.
"""

import json
import re
from itertools import combinations
from pathlib import Path
from statistics import mean

import click
import numpy as np

from benchmarks.inside import N_QUERIES, CachedClassifier, Classifier, read_items, subject_of
from benchmarks.reviews import opened
from slalom import METHODS, Explanation, explain

TEXTS = (
    "It was not bad at all, in fact I did not expect to like it so much.",
    "A film that is neither good nor funny, but never boring.",
    "The parts I loved most about this movie were the scenes in the garage.",
    "If not for his money this stupid film would never have been made.",
    "I kept expecting someone to walk across the screen and start making fun of it.",
    "She is offensive beyond anyone I have ever seen connected with a movie before.",
    "There is nothing here that you have not seen done better a hundred times.",
    "Hardly a masterpiece, yet far from the disaster that people said it would be.",
    "The jokes work because there is a constant flow of them and no one cares.",
    "Without the wonderful lead this would be just another dull and lifeless drama.",
)
N_STRONGEST, N_PER_TEXT = 20, 10
Place = tuple[int, int]


def truth(classifier: Classifier, explanation: Explanation) -> dict[Place, float]:
    """The second difference of every pair, asked."""
    subject = subject_of(classifier, explanation)
    n_units = subject.n_units
    pairs = list(combinations(range(n_units), 2))
    gone = [(), *((unit,) for unit in range(n_units)), *pairs]
    masks = np.ones((len(gone), n_units), dtype=bool)
    for row, units in enumerate(gone):
        masks[row, list(units)] = False
    said = dict(zip(gone, subject.scores(masks).tolist(), strict=True))
    return {(i, j): said[()] - said[(i,)] - said[(j,)] + said[(i, j)] for i, j in pairs}


def first_sentences(data: Path, words: str) -> list[str]:
    """Of reviews, those with so many words; "16-26" are the fewest and the most."""
    fewest, most = map(int, words.split("-"))
    items, _ = read_items(data, ("negative", "positive"))
    firsts = (re.split(r"(?<=[.!?])\s", str(item.text), maxsplit=1)[0] for item in items)
    return [one for one in firsts if fewest <= len(one.split()) <= most and "<" not in one]


@click.command()
@click.option("--model", help="A model's folder or name.  [default: the bundled one]")
@click.option("--texts", "n_texts", default=len(TEXTS), show_default=True)
@click.option("--method", default="slalom", show_default=True, type=click.Choice(list(METHODS)))
@click.option("--queries", default=N_QUERIES, show_default=True, help="For the pairs of a text.")
@click.option(
    "--data", type=click.Path(exists=True, path_type=Path), help="Reviews, as JSON lines."
)
@click.option("--words", default="16-26", show_default=True, help="Of a sentence of a review.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the rows as JSON.")
def main(
    model: str | None,
    n_texts: int,
    method: str,
    queries: int,
    data: Path | None,
    words: str,
    out: Path | None,
) -> None:
    """Which of the true pairs are found."""
    classifier = opened(model)
    texts = list(TEXTS) if data is None else first_sentences(data, words)
    rows: list[dict[str, object]] = []
    pooled: list[tuple[float, bool]] = []
    shares, spent, of_all = [], [], []
    for text in texts[:n_texts]:
        e = explain(classifier, text, method, target=len(classifier.labels) - 1)
        true = truth(CachedClassifier(classifier), e)
        found = e.interactions(N_STRONGEST, CachedClassifier(classifier), n_queries=queries)
        listed = {pair.units for pair in found}
        ranked = sorted(true, key=lambda at: -abs(true[at]))
        pooled += [(abs(true[at]), at in listed) for at in ranked]
        shares.append(mean(at in listed for at in ranked[:N_PER_TEXT]))
        spent.append(found.n_queries)
        of_all.append(len(true) + len(e.units) + 1)
        strongest = [{"units": at, "size": true[at], "found": at in listed} for at in ranked[:20]]
        rows.append({"text": text, "n_queries": found.n_queries, "strongest": strongest})
        click.echo(f"{found[0] if len(found) else 'no pair'}   ← {text}")
    if out is not None:
        out.write_text(json.dumps(rows, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    best = sorted(pooled, reverse=True)[:N_STRONGEST]
    click.echo(
        f"{sum(hit for _, hit in best)} of the {N_STRONGEST} strongest pairs, "
        f"{mean(shares):.0%} of the {N_PER_TEXT} strongest of each text, "
        f"{mean(spent):.0f} queries per text where all pairs take {mean(of_all):.0f}"
    )


if __name__ == "__main__":
    main()
