"""What a run will cost, estimated from a few of its documents; nothing is asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from slalom.classifiers.base import Classifier
from slalom.corpus.layout import Layout
from slalom.corpus.plan import Shard
from slalom.corpus.records import Record
from slalom.corpus.work import Recipe
from slalom.errors import InputError, counted, grouped
from slalom.explainers.dry_run import Cost, dry_run
from slalom.explainers.splitting import document_of

SAMPLE = 20  # documents that are rehearsed, or a few more


@dataclass(frozen=True)
class RunCost:
    """Means over the documents rehearsed, times the rows that are left."""

    n_rows: int
    n_sampled: int
    n_queries: float  # per document
    n_tokens: float
    n_requests: float | None  # None: nothing is sent anywhere

    def __str__(self) -> str:
        if not self.n_rows:
            return "nothing is left to explain"
        rows = counted(self.n_rows, "text")
        if not self.n_sampled:
            return f"{rows} left; none of those sampled can be explained"
        queries = f"about {_rounded(self.n_rows * self.n_queries)} queries"
        if self.n_requests is not None:
            queries += f" (at most {_rounded(self.n_rows * self.n_requests)} requests)"
        return (
            f"{rows} to explain: {queries} and {_rounded(self.n_rows * self.n_tokens)} tokens, "
            f"estimated from {self.n_sampled} of them ({self.n_queries:.0f} queries and "
            f"{self.n_tokens:.0f} tokens each)"
        )


def _rounded(n: float) -> str:
    """Three digits, the others 0."""
    return grouped(round(float(f"{n:.3g}")))


def _spread(left: Sequence[Shard]) -> Iterator[Record]:
    """Some rows of some shards, at even distances: rows may be in order of their length."""
    shards = left[:: max(1, len(left) // SAMPLE)]
    step = max(1, sum(shard.n_rows for shard in shards) // SAMPLE)
    rows = chain.from_iterable(shard.records() for shard in shards)
    return islice(rows, step // 2, None, step)


def cost_of(
    classifier: Classifier, recipe: Recipe, layout: Layout, *, left: Sequence[Shard]
) -> RunCost:
    """Rehearse documents spread over the input."""
    n_rows = sum(shard.n_rows for shard in left)
    costs: list[Cost] = []
    for record in _spread(left):
        try:
            text = layout.text(record)
            document = document_of(classifier, text, recipe.units, too_long=recipe.too_long)
        except InputError:
            continue
        costs.append(dry_run(recipe.method, classifier, document, request=recipe.request))
    n = max(1, len(costs))
    requests = [cost.n_requests for cost in costs if cost.n_requests is not None]
    return RunCost(
        n_rows,
        len(costs),
        sum(cost.n_queries for cost in costs) / n,
        sum(cost.n_tokens for cost in costs) / n,
        sum(requests) / n if requests else None,
    )
