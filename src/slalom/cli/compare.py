"""`slalom compare`: one text, several methods side by side."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from slalom.cli.typed import (
    DEVICE,
    MODEL,
    SEED,
    STANDARD,
    TARGET,
    TOO_LONG,
    UNITS,
    at_least,
    check_writable,
    complain,
    methods_typed,
    names_typed,
    one_class_typed,
    progress_bar,
    text_typed,
    write,
)
from slalom.errors import InputError, NoModelError, SlalomError

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier
    from slalom.explanation import Explanation

COMPARED = "slalom,slalom-fast,lime,kernel-shap,leave-one-out,integrated-gradients,attention-lrp"


@click.command()
@click.argument("text", required=False)
@click.option("--file", metavar="FILE", help="Read the text from a file.")
@MODEL
@click.option("--methods", default=COMPARED, show_default=True, help="Names, or all.")
@click.option("--queries", type=at_least(1), metavar="N", help="Ask at most N per method.")
@click.option(
    "--metrics", metavar="A,B", help="Columns of the table, such as UNI,deletion; or all."
)
@TARGET
@UNITS
@TOO_LONG
@SEED
@DEVICE
@click.option(
    "--json", "json_file", metavar="FILE", help="Write explanations, one per line; - for stdout."
)
def compare(
    text: str | None,
    file: str | None,
    model: str | None,
    methods: str,
    queries: int | None,
    metrics: str | None,
    target: str | None,
    units: str | None,
    too_long: str,
    seed: int,
    device: str | None,
    json_file: str | None,
) -> None:
    """Explain TEXT with several methods side by side."""
    from slalom.classifiers.load import load
    from slalom.metrics.table import METRICS

    content = text_typed(text, file)
    if json_file is not None:
        check_writable(json_file)
    chosen, wanted = methods_typed(methods), names_typed(metrics, METRICS, "metric")
    classifier = load(model, device=device)
    wanted_class = one_class_typed(target, classifier.labels)
    document = classifier.split(content, units, too_long=too_long)
    explanations: list[Explanation] = []
    with progress_bar(len(chosen), 0, doing="explaining") as advance:
        for method in chosen:
            try:
                explanations += method.explain(
                    classifier, [document], target=wanted_class, n_queries=queries, seed=seed
                )
            except SlalomError as problem:
                complain(SlalomError(f"{method.name}: ", *problem.args))
            advance()
    if not explanations:
        raise InputError("none of these methods can explain this text with this classifier")
    if json_file is not None:
        lines = [json.dumps(e.to_json(), ensure_ascii=False) + "\n" for e in explanations]
        write(json_file, "".join(lines))
    if json_file != STANDARD:
        _show(explanations, _measured(classifier, explanations, wanted))


def _measured(
    classifier: "Classifier", explanations: "Sequence[Explanation]", names: tuple[str, ...]
) -> dict[str, dict[str, float | None]]:
    from slalom.classifiers.cached import CachedClassifier
    from slalom.metrics.table import METRICS

    remembered = CachedClassifier(classifier)
    table: dict[str, dict[str, float | None]] = {}
    for explanation in explanations:
        row = table.setdefault(explanation.method, {})
        for name in names:
            try:
                row[name] = METRICS[name].measure(remembered, explanation)
            except NoModelError:
                row[name] = None
    return table


def _show(
    explanations: "Sequence[Explanation]", measured: dict[str, dict[str, float | None]]
) -> None:
    from rich.console import Console

    from slalom.views.side_by_side import SideBySide

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without emoji still gets the rest
    console = Console(highlight=False)
    console.print(SideBySide(explanations, measured))
