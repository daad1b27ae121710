"""`slalom compare`: one text, several methods side by side."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import click

from slalom.cli.typed import (
    ABSENT,
    COUNT,
    DEVICE,
    MODEL,
    REVISION,
    SEED,
    STANDARD,
    TARGET,
    TOO_LONG,
    UNITS,
    complain,
    console_for_results,
    files_typed,
    methods_typed,
    names_typed,
    one_class_typed,
    text_typed,
    write,
)
from slalom.errors import InputError, NoModelError, SlalomError

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier
    from slalom.document import Document
    from slalom.explainers.base import Explainer, Request
    from slalom.explanation import Explanation

Measured = dict[str, dict[str, float | None]]  # method → metric → number
MEASURED = "UNI,REM"
COMPARED = "slalom,slalom-fast,lime,kernel-shap,leave-one-out,integrated-gradients,attention-lrp"


@click.command(short_help="Compare several methods on one text.")
@click.argument("text", required=False)
@click.option("--file", metavar="FILE", help="Read the text from a file.")
@MODEL
@click.option("--methods", default=COMPARED, show_default=True, help="Names, or all.")
@click.option("--queries", type=COUNT, metavar="N", help="Use at most N queries per method.")
@click.option(
    "--metrics",
    default=MEASURED,
    show_default=True,
    help="Metrics to compare them by: names, all or none.",
)
@TARGET
@UNITS
@TOO_LONG
@SEED
@DEVICE
@REVISION
@ABSENT
@click.option(
    "--json", "json_file", metavar="FILE", help="Write explanations with metrics, one per line."
)
@click.option("--html", "html_file", metavar="FILE", help="Write a page for the browser.")
def compare(
    text: str | None,
    file: str | None,
    model: str | None,
    methods: str,
    queries: int | None,
    metrics: str,
    target: str | None,
    units: str | None,
    too_long: str,
    seed: int,
    device: str | None,
    revision: str | None,
    absent: str,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Compare several methods on TEXT (if omitted, the text is read from a pipe)."""
    from slalom.classifiers.absent import with_absent
    from slalom.classifiers.load import load
    from slalom.explainers.base import Request
    from slalom.explainers.splitting import document_of
    from slalom.metrics.table import METRICS

    files = files_typed(json_file, html_file)
    content = text_typed(text, file)
    typed = None if metrics == "none" else metrics
    chosen, wanted = methods_typed(methods), names_typed(typed, METRICS, "metric")
    classifier = with_absent(load(model, device=device, revision=revision), absent)
    wanted_class = one_class_typed(target, classifier.labels)
    document = document_of(classifier, content, units, too_long=too_long)
    explanations = _explained(classifier, document, chosen, Request(wanted_class, queries, seed))
    if not explanations:
        raise InputError("none of these methods can explain this text with this classifier")
    measured = _measured(classifier, explanations, wanted)
    if json_file is not None:
        write(json_file, _json(explanations, measured))
    if html_file is not None:
        from slalom.views.comparison import page

        write(html_file, page(explanations, _by_title(measured)))
    if STANDARD not in files:
        from slalom.views.side_by_side import SideBySide

        console_for_results().print(SideBySide(explanations, _by_title(measured)))


def _explained(
    classifier: "Classifier",
    document: "Document",
    methods: "Sequence[Explainer]",
    request: "Request",
) -> "list[Explanation]":
    """By every method that can; what the others say goes to standard error."""
    from slalom.explainers.execution.driver import explained
    from slalom.explainers.execution.progress import Meter
    from slalom.explainers.execution.steps import Order

    total = sum(request.planned(method, document) for method in methods)
    found: list[Explanation] = []
    from slalom.explainers.execution.progress import Wait, bar

    with bar(total, Wait("explaining", "queries", after="fitting")) as show:
        meter = Meter(show or (lambda done, total: None), total)
        for method in methods:
            order = Order(method, request, keep_errors=True)
            for result in explained(classifier, order, [document], meter=meter):
                if isinstance(result, SlalomError):
                    complain(SlalomError(f"{method.name}: ", *result.args))
                else:
                    found.append(result)
    return found


def _measured(
    classifier: "Classifier", explanations: "Sequence[Explanation]", names: tuple[str, ...]
) -> Measured:
    """Every metric of every method, from one memory; None where a method has no such number."""
    from slalom.classifiers.cached import CachedClassifier
    from slalom.metrics.table import METRICS

    remembered = CachedClassifier(classifier)
    table: Measured = {}
    for explanation in explanations:
        row = table.setdefault(explanation.method, {})
        for name in names:
            try:
                number = METRICS[name].measure(remembered, explanation)
                row[name] = number if isfinite(number) else None
            except NoModelError:
                row[name] = None
    return table


def _by_title(measured: Measured) -> Measured:
    from slalom.metrics.table import METRICS

    return {
        method: {METRICS[name].title: number for name, number in row.items()}
        for method, row in measured.items()
    }


def _json(explanations: "Sequence[Explanation]", measured: Measured) -> str:
    """An explanation per line, as `slalom.read` takes it, with its metrics beside it."""
    records = [e.to_json() | {"metrics": measured[e.method]} for e in explanations]
    return "".join(
        json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records
    )
