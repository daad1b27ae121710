"""How long an explanation will take here, and how few queries make a long text bearable.

A long text is read once, which tells the seconds per token; what the method would ask is counted
without asking it. Where that takes too long and the caller did not say how many queries to ask,
fewer are asked, and the explanation says so.
"""

from dataclasses import dataclass, replace
from time import monotonic

from slalom.classifiers.base import unpaid
from slalom.document import Document
from slalom.explainers.dry_run import dry_run
from slalom.explainers.surrogate import SurrogateExplainer
from slalom.web.limits import Limits
from slalom.web.models import Model
from slalom.web.requests import ExplanationRequest

LONG = 500  # tokens; how long a longer text will take is found out first
MIN_PER_UNIT = 2  # queries, however long they take


@dataclass(frozen=True, eq=False)
class Plan:
    """What will be asked about a document."""

    document: Document  # with a note where fewer queries are asked than usual
    n_queries: int | None  # None: as many as the method likes
    expected: int
    seconds: float | None = None  # None: not long

    def as_event(self) -> dict[str, int]:
        return {"done": 0, "total": self.expected, "seconds": round(self.seconds or 0)}


def plan_of(wanted: ExplanationRequest, document: Document, limits: Limits) -> Plan:
    asked = wanted.asked.n_queries
    expected = asked or wanted.asked.repeats * wanted.method.budget(document)
    n_queries = limits.queries if expected > limits.queries else asked
    pace = _pace(wanted.model, document)
    if pace is None or not isinstance(wanted.method, SurrogateExplainer):
        return Plan(document, n_queries, expected)
    cost = dry_run(
        wanted.method, wanted.model.classifier, document, request=wanted.request(n_queries)
    )
    plan = Plan(document, n_queries, cost.n_queries, pace * cost.n_tokens)
    return plan if asked else _shortened(plan, limits.soon)


def _pace(model: Model, document: Document) -> float | None:
    """Seconds per token; None: the text is short, or asking costs money."""
    full = document.full()
    n_tokens = int(document.n_tokens(full)[0])
    if n_tokens < LONG or unpaid(model.classifier, document, full) is not None:
        return None
    with model.lock:
        begun = monotonic()
        model.classifier.logits([(document, full)])
        return (monotonic() - begun) / n_tokens


def _shortened(plan: Plan, soon: float) -> Plan:
    """As many queries as take `soon` seconds, if all take longer."""
    document, usual, seconds = plan.document, plan.expected, plan.seconds or 0.0
    fewest = min(usual, MIN_PER_UNIT * document.n_features)
    n_queries = max(fewest, int(usual * soon / max(seconds, soon)))
    if n_queries >= usual:
        return plan
    note = (
        f"{n_queries} queries were allowed instead of {usual}, which would have taken about "
        f"{seconds:.0f} s here: give a number of queries for more"
    )
    noted = replace(document, notes=(*document.notes, note))
    return Plan(noted, n_queries, n_queries, seconds * n_queries / usual)
