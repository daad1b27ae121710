"""Whether what `cite` says is true: its claims against the model itself, on contexts made up here.

    python -m benchmarks.citations [--model FOLDER] [--contexts 24] [--queries N]
        [--cache FILE] [--out FILE]

Each context has 8 to 14 sentences about people. A fact that the answer needs stands there once,
twice or three times, word by word or in other words, beside one that contradicts it, or not at all.
The model is then asked without every source, every pair and every three of the strongest, and the
same definitions are applied to what it says:

    right, noise      sources that say it and are cited, of all that do; others that are cited
    said, false       "either suffices" is said, and one alone loses more than half of what all lose
    missed            it is not said, and one alone loses less than a quarter
    off               the loss without all cited sources, as told less as the model says, in nats
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.context import model_of
from benchmarks.inside import (
    LEAST,
    OF_ALL,
    AnswerScorer,
    DiskCache,
    FloatArray,
    attributed,
    citation_of,
    scores_of,
    sentences_of,
    sources_of,
)
from slalom import Explanation

KINDS = ("once", "twice", "in other words", "three times", "contradicted", "not at all")
NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Iris", "Jack")
FACTS = {  # what is asked → how it is said, in two ways, and with what
    "lives": ("{} lives in {}.", "{}'s home is in {}.", ("Rome", "Oslo", "Lima", "Cairo")),
    "works": ("{} works as a {}.", "{} earns a living as a {}.", ("baker", "nurse", "pilot")),
    "plays": ("{} plays the {}.", "The {1} is what {0} plays.", ("piano", "flute", "drums")),
    "likes": ("{} likes {}.", "What {} likes most is {}.", ("chess", "tennis", "cooking")),
}
BESIDE = 4  # of the strongest sources, every pair and every three are asked about


@dataclass(frozen=True)
class Made:
    """Sentences, what is asked about them, and an answer."""

    kind: str
    sources: tuple[str, ...]
    question: str
    answer: str
    carriers: tuple[frozenset[int], ...]  # which sources say each sentence of the answer


def made(number: int) -> Made:
    """A context of its own for every number."""
    rng = np.random.default_rng(number)
    kind = KINDS[number % len(KINDS)]
    who, *others = rng.permutation(NAMES).tolist()
    first, second = rng.permutation(list(FACTS)).tolist()[:2]
    said, otherwise, things = FACTS[first]
    thing, other = rng.permutation(things).tolist()[:2]
    fact, again = said.format(who, thing), otherwise.format(who, thing)
    own = {
        "once": [fact],
        "twice": [fact, fact],
        "in other words": [fact, again],
        "three times": [fact, again, fact],
        "contradicted": [fact, said.format(who, other)],
        "not at all": [],
    }[kind]
    also, _, what = FACTS[second]
    beside = also.format(who, rng.choice(what))
    around = [
        FACTS[fact][int(rng.integers(2))].format(name, rng.choice(FACTS[fact][2]))
        for name in others
        for fact in rng.permutation(list(FACTS)).tolist()[:2]
    ]
    n_around = int(rng.integers(8, 15)) - len(own) - 1
    sources = rng.permutation([*own, beside, *rng.permutation(around)[:n_around]]).tolist()
    question = f"What do you know about {who}?"
    ways = ({fact, again} if own else set(), {beside})
    carriers = tuple(frozenset(at for at, one in enumerate(sources) if one in w) for w in ways)
    return Made(kind, tuple(sources), question, f"{fact} {beside}", carriers)


def checked(scorer: AnswerScorer, found: Explanation, context: Made) -> Iterator[dict[str, Any]]:
    """For each sentence of the answer: what is said of it, and what the model says."""
    n_units = len(found.units)
    sentences = zip(sentences_of(found), context.carriers, strict=True)
    for (span, part), carriers in sentences:
        told = citation_of(part)
        assert found.said is not None
        tokens = found.said.tokens_of(span)
        strongest = np.argsort(-part.scores["shapley"])[:BESIDE].tolist()
        named = sorted({*strongest, *(unit for one in told.either for unit in one)})
        cited = tuple(sorted(one.source for one in told.sources))
        whole = tuple(range(n_units))
        tried = [one for size in (2, 3) for one in combinations(named, size)]
        sets = [*((unit,) for unit in named), *tried, *told.either, whole, cited]
        lost = dict(zip(sets, _lost(scorer, sets, tokens), strict=True))
        needed = max(LEAST, OF_ALL * lost[whole])
        spared = {one: _spared(one, lost, needed) for one in (*tried, *told.either)}
        holds = [one for one, share in spared.items() if share <= 0.25]
        smallest = [one for one in holds if not any(set(o) < set(one) for o in holds)]
        yield {
            "kind": context.kind,
            "sentence": told.text,
            "sources": context.sources,
            "carriers": sorted(carriers),
            "cited": [(one.source, one.nats, one.lost) for one in told.sources],
            "right": sorted(carriers & {*cited}),
            "noise": sorted({*cited} - carriers),
            "said": told.either,
            "false": [one for one in told.either if spared[one] > 0.5],
            "missed": [one for one in smallest if one not in told.either],
            "off": told.lost - lost[cited],
            "whole": lost[whole],
            "trust": part.quality.trust,
            "r2": part.quality.r2,
        }


def _lost(scorer: AnswerScorer, sets: list[tuple[int, ...]], tokens: Any) -> FloatArray:
    kept = np.ones((1 + len(sets), len(scorer.sources.spans)), dtype=bool)
    for row, removed in enumerate(sets, start=1):
        kept[row, list(removed)] = False
    scores = scores_of(scorer.log_odds(kept)[:, tokens])
    return np.asarray(scores[0] - scores[1:])


def _spared(one: tuple[int, ...], lost: dict[tuple[int, ...], float], needed: float) -> float:
    """Of the loss of all of them, the largest share that is lost without all but one."""
    if lost[one] < needed:
        return 1.0
    return max(lost[rest] for rest in combinations(one, len(one) - 1)) / lost[one]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--contexts", type=int, default=24)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    writer, rows = model_of(given.model), []
    cache = None if given.cache is None else DiskCache(given.cache)
    for number in range(given.contexts):
        one = made(number)
        sources = sources_of(list(one.sources))
        scorer = AnswerScorer(writer, sources, one.question, one.answer, cache=cache)
        for row in checked(scorer, attributed(scorer, n_queries=given.queries), one):
            rows.append(row)
            print(json.dumps(row), flush=True)
            if given.out is not None:
                with given.out.open("a") as kept:
                    kept.write(json.dumps(row) + "\n")
    print("", *map(line, [*KINDS, ""], [rows] * (len(KINDS) + 1)), sep="\n")


def line(kind: str, rows: list[dict[str, Any]]) -> str:
    """Counts over the rows of a kind; "": of all."""
    own = [row for row in rows if kind in ("", row["kind"])]
    names = ("carriers", "right", "noise", "said", "false", "missed")
    counts = ", ".join(f"{sum(len(row[name]) for row in own)} {name}" for name in names)
    off = np.median([abs(row["off"]) for row in own]) if own else 0.0
    return f"{kind or 'all'}: {len(own)} sentences, {counts}, off by {off:.2f}"


if __name__ == "__main__":
    main()
