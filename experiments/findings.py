"""What each finished table says to the paper's claim: does it hold, and the numbers in words.

Knows finished Tables only; everything is read off the rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from experiments.synthetic_tables import AS_PUBLISHED, standing
from experiments.table import Cell, Map, Number, Table

MISSING = "not measured"
SLACK = 0.005  # of a mean of 1 − p: less is a tie
Finding = tuple[bool | None, str]  # does a claim hold (None: nothing to judge), and what was found


def column(table: Table, at: int, *, only: Sequence[str] = (), name_at: int = 0) -> list[float]:
    """The numbers of a column, of those rows whose name holds one of `only`."""
    rows = [r for r in table.rows if not only or any(part in str(r[name_at]) for part in only)]
    cells = [row[at] for row in rows]
    return [c.value for c in cells if isinstance(c, Number) and c.value is not None]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The smallest and the largest, in words."""
    if not values:
        return MISSING
    low, high = (f"{value:.{digits}f}".replace("-", "−") for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def pictures(table: Table) -> Finding:
    """Words that matter are loud, and the sign of their value says which way they pull."""
    louder, alike = column(table, 3), column(table, 4)
    n_louder = sum(gap > 0 for gap in louder)
    told = (
        f"words that matter are louder than others in {n_louder} of {len(louder)} reviews; "
        f"{spread(alike)} of their values have the sign of their effect"
    )
    return n_louder > 0.8 * len(louder) and float(np.mean(alike or 0)) > 0.8, told


def fig_7(table: Table) -> Finding:
    """The truth that is said to be drawn as the paper's."""
    here = replace(table, rows=tuple(row for row in table.rows if row[0] == "as published"))
    median, largest, loudest = (sum(column(here, at)) for at in (2, 3, 4))
    told = f"{median:.2f}, {largest:.2f} and {loudest:.1f} where drawn as its published code does"
    return abs(median - 0.16) < 0.08 and abs(largest - 1.91) < 0.5 and 9 < loudest < 15, told


TRANSFORMERS = ("BERT", "GPT-2")  # DistilBERT too


def fig_1(table: Table) -> Finding:
    def gaps(*names: str) -> list[float]:
        whole, parts = column(table, 5, only=names), column(table, 4, only=names)
        return [abs(a - b) for a, b in zip(whole, parts, strict=True)]

    plain, deep = gaps("naive-bayes"), gaps("bert", "gpt2")
    told = f"off by {spread(plain)} for Naive Bayes, by {spread(deep)} for transformers"
    return max(plain, default=0) < 0.01 < min(deep, default=0), told


def fig_3(table: Table) -> Finding:
    flat, nets = column(table, 7, only=TRANSFORMERS), column(table, 7, only=("ReLU",))
    told = f"slopes {spread(flat)} for transformers, {spread(nets)} for ReLU nets"
    published = 0.6  # the least rise per word of the paper's own nets, in its notebook
    return max(flat, default=1) < 0.15 and min(nets, default=0) > published, told


def fig_4(table: Table) -> Finding:
    ahead, ties, behind = _standings(table, 4)
    recovered = column(table, len(table.columns) - 1)
    told = (
        f"SLALOM nearer than both to {ahead} of {ahead + ties + behind} models, {ties} ties; "
        f"recovered importances correlate by {spread(recovered, 4)}"
    )
    return not behind and min(recovered, default=0) > 0.99, told


def _standings(table: Table, at: int) -> tuple[int, int, int]:
    """How often SLALOM is ahead, level within two standard errors, and behind, over runs."""
    cells = [row[at] for row in table.rows if isinstance(row[at], Number)]
    found = [standing(cell) for cell in cells if isinstance(cell, Number)]
    return found.count("ahead"), found.count("tie"), found.count("behind")


def fig_6(table: Table) -> Finding:
    short, long = (column(table, at, only=TRANSFORMERS) for at in (1, len(table.columns) - 1))
    nets = column(table, len(table.columns) - 1, only=("ReLU",))
    right = [s > 1.5 for s in short] + [v < 1.5 for v in long]
    told = (
        f"transformers {spread(short)} in one word, {spread(long)} each in fourteen; "
        f"ReLU nets {spread(nets)}"
    )
    return all(right), told


def fig_9(table: Table) -> Finding:
    closed, fitted = column(table, 3), column(table, 4)
    told = (
        f"error of importances {spread(closed, 3)} by the closed form, {spread(fitted, 5)} fitted"
    )
    return max(closed, default=1) < 2 * max(fitted, default=0), told


def table_2a(table: Table) -> Finding:
    faces = [column(table, at, only=("SLALOM-eff",), name_at=1) for at in (2, 3, 4)]
    told = "v {}, s {}, exp(s)·v {}".format(*map(spread, faces))
    order = [s < v <= lin for v, s, lin in zip(*faces, strict=True)]
    return all(order), told


def table_2b(table: Table) -> Finding:
    v, s, lin = (column(table, at) for at in (1, 2, 3))
    right = [a < max(b, c) for a, b, c in zip(v, s, lin, strict=True)]
    return all(right), f"s {spread(s)}, exp(s)·v {spread(lin)}, v {spread(v)}"


def table_13(table: Table) -> Finding:
    v, s, lin = (column(table, at) for at in (1, 2, 3))
    told = f"s {spread(s)}, exp(s)·v {spread(lin)}, v {spread(v)}"
    right = [value > 0.6 for value in lin]
    right += [value > 0.6 for value in s[:1]] + [value < 0.5 for value in s[1:]]  # BLOOM, Mamba
    return all(right), told


def curves(*, higher: bool) -> Callable[[Table], Finding]:
    """exp(s)·v against LIME and SHAP, and whether gradients do badly."""

    def found(table: Table) -> Finding:
        own, lime, shap, gradients = (column(table, at) for at in (3, 4, 5, 6))
        level = _not_behind(own, lime, shap, higher=higher)
        poor = [
            (a - b > 0.1) if higher else (b - a > 0.1) for a, b in zip(own, gradients, strict=True)
        ]
        told = (
            f"exp(s)·v {spread(own, 3)}, not behind LIME and SHAP on {sum(level)} of "
            f"{len(level)}; IG {spread(gradients, 3)}"
        )
        return all(level) and all(poor), told

    return found


def _not_behind(own: Sequence[float], *rivals: Sequence[float], higher: bool) -> list[bool]:
    """Row by row: no rival is better by more than the slack."""
    sign = 1 if higher else -1
    return [
        all(sign * (ours - theirs) > -SLACK for theirs in others)
        for ours, *others in zip(own, *rivals, strict=True)
    ]


def many(table: Table) -> Finding:
    """Deletion and insertion: exp(s)·v against LIME and SHAP, and norms × sign."""
    level, told, poor = [], [], []
    for higher, name in ((True, "deletion"), (False, "insertion")):
        own, lime, shap, *norms = (
            column(table, at, only=(name,), name_at=1) for at in (4, 5, 6, 9, 10)
        )
        level += _not_behind(own, lime, shap, higher=higher)
        poor += [(value < 0.5) if higher else (value > 0.1) for value in (*norms[0], *norms[1])]
        told.append(f"{name} {spread(own, 3)}, by norms × sign {spread([*norms[0], *norms[1]], 3)}")
    return all(level) and all(poor), f"exp(s)·v in {'; in '.join(told)}"


def table_4(table: Table) -> Finding:
    films, restaurants = column(table, 2), column(table, 3)
    cells = [c for row in table.rows for c in row if isinstance(c, Number)]
    short = [float(c.paper or 0) - (c.value or 0) for c in cells if c.paper is not None]
    told = f"{spread(films)} (IMDB) and {spread(restaurants)} (Yelp-HAT)"
    return max(short, default=1) < 0.06, told


def table_6(table: Table) -> Finding:
    ahead, ties, behind = _standings(table, 4)
    n = ahead + ties + behind
    told = f"SLALOM has the smallest error for {ahead} of {n} models, {ties} ties"
    return bool(n) and not behind, told


def recovered(within: float, digits: int) -> Callable[[Table], Finding]:
    """Errors of models told the truth, of those with labels, and those as the paper computes."""

    def found(table: Table) -> Finding:
        published = [row for row in table.rows if AS_PUBLISHED in str(row[0])]
        labelled = [r for r in table.rows if "labels drawn" in str(r[0]) and r not in published]
        told = [row for row in table.rows if row not in published and row not in labelled]
        errors = [numbers_of(rows) for rows in (told, labelled, published)]
        words = (
            f"{spread(errors[0], digits)} told the truth, {spread(errors[1], 1)} with drawn "
            f"labels, {spread(errors[2], digits)} {AS_PUBLISHED}"
        )
        return all(values and max(values) <= within for values in errors[:2]), words

    return found


def numbers_of(rows: Sequence[tuple[Cell, ...]]) -> list[float]:
    return [c.value for row in rows for c in row if isinstance(c, Number) and c.value is not None]


def table_10(table: Table) -> Finding:
    insertion, deletion = column(table, 1), column(table, 2)
    if len(deletion) < 3:
        return False, MISSING
    shap, lime, own = deletion[:3]
    right = [own > max(shap, lime) - SLACK, insertion[2] < min(insertion[:2]) + SLACK]
    told = (
        f"deletion {own:.3f} against {lime:.3f} (LIME) and {shap:.3f} (SHAP); "
        f"insertion {insertion[2]:.3f} against {insertion[1]:.3f} and {insertion[0]:.3f}"
    )
    return all(right), told


def table_11(table: Table) -> Finding:
    at = len(table.columns) - 1
    shap, lime = (column(table, at, only=(name,)) for name in ("kernel-shap", "lime"))
    if not shap or not lime:
        return False, MISSING
    told = f"{shap[0]:.1f} and {lime[0]:.1f} times, through the same batches"
    return min(shap[0], lime[0]) > 2, told


def table_12(table: Table) -> Finding:
    shap, own = column(table, 2, only=("SHAP",)), column(table, 2, only=("SLALOM-eff",))
    first = [row for row in table.rows if row[0] == "SLALOM-eff"]
    if not shap or not first or not isinstance(first[0][3], Number):
        return False, MISSING
    gap = first[0][3]
    told = f"500 queries {own[0]:.4f}, SHAP {shap[0]:.4f}; paired {_with_error(gap)}"
    return (gap.value or 0) > -2 * (gap.error or 0), told


def _with_error(cell: Number) -> str:
    return f"{cell.value:+.4f} ± {cell.error or 0:.4f}".replace("-", "−")


def removal(table: Table) -> Finding:
    def at_ten(method: str) -> list[float]:
        return column(table, 4, only=(method,), name_at=1)

    lrp = at_ten("LRP")
    fidel, local = (
        [a / b - 1 for a, b in zip(at_ten(name), lrp, strict=True)]
        for name in ("SLALOM-fidel", "slalom-local")
    )
    told = f"{_percent(fidel)} against LRP; our `slalom-local` {_percent(local)}"
    return bool(fidel) and max(fidel) < -0.3, told


def removal_lrp(table: Table) -> Finding:
    """At k = 10, of relevances as they come and scaled."""
    gaps: dict[str, list[float]] = {}
    sure = []
    own = 0.0
    for row in table.rows:
        error, paired = row[4], row[6]
        if row[1] == "SLALOM-fidel" and isinstance(error, Number):
            own = error.value or 0.0
        elif isinstance(paired, Number) and isinstance(error, Number) and error.value:
            gaps.setdefault(str(row[1]), []).append(own / error.value - 1)
            sure.append((paired.value or 0) < -2 * (paired.error or 0))
    told = ", ".join(f"{_percent(found)} against {name}" for name, found in gaps.items())
    return bool(sure) and all(sure), told or MISSING


def gradients(table: Table) -> Finding:
    """Norms × sign against gradients with their own signs, in deletion."""
    norms = column(table, 2, only=("× sign",), name_at=1)
    own = column(replace(table, rows=tuple(r for r in table.rows if r[1] == "IG")), 2)
    told = f"deletion {spread(norms, 3)} by norms × sign, {spread(own, 3)} by IG itself"
    return max(norms, default=1) < 0.5, told


def _percent(gaps: Sequence[float]) -> str:
    low, high = (100 * bound(gaps, default=0) for bound in (min, max))
    return f"{low:+.0f} to {high:+.0f} %".replace("-", "−")


def black_box(table: Table) -> Finding:
    ranks = column(table, len(table.columns) - 1)
    told = f"a server here instead of GPT-4; rank correlation {spread(ranks)} with asking directly"
    return min(ranks, default=0) > 0.9, told


def case_study(table: Table) -> Finding:
    def counts(at: int) -> tuple[int, int]:
        pairs = [str(row[at]).split(" of ") for row in table.rows]
        return sum(int(a) for a, _ in pairs), sum(int(b) for _, b in pairs)

    found, random = counts(3), counts(6)
    told = "{} of {} reviews flipped, by random words {} of {}".format(*found, *random)
    return found[0] > 2 * random[0], told


def fidelity(table: Table) -> Finding:
    """On how many classifiers all rivals with the most queries have larger subset errors."""
    most = max((str(row[2]) for row in table.rows), key=int, default="0")
    models = list(dict.fromkeys(str(row[0]) for row in table.rows))
    ahead = 0
    for model in models:
        here = replace(table, rows=tuple(row for row in table.rows if row[0] == model))
        rivals = replace(here, rows=tuple(r for r in here.rows if r[2] == most))
        own = replace(here, rows=tuple(r for r in here.rows if r[1] == "slalom"))
        ahead += all(min(column(own, at)) < min(column(rivals, at)) for at in (3, 4))
    told = f"`slalom` ahead of all with {most} queries on {ahead} of {len(models)} classifiers"
    return None, told


def human(table: Table) -> Finding:
    return None, f"AU-ROC {spread(column(table, 2, only=('slalom',)))} for slalom's scores"


def lime_limit(table: Table) -> Finding:
    exact, printed = column(table, 4), column(table, 6)
    told = f"off by {spread(printed)}; our exact form by {spread(exact)}"
    return max(printed, default=1) < 0.1, told


def seven(table: Table) -> Finding:
    """The first picture holds scores of one sentence, the last rank correlations of all sizes."""
    first, last = table.panels[0], table.panels[-1]
    if not (isinstance(first, Map) and isinstance(last, Map)):
        return False, MISSING
    names = [name for name in last.y_marks if not name.startswith("SLALOM")]  # the paper's seven
    kinds = np.array([name.split("-")[0].replace("G×I", "G") for name in names])
    other = kinds[:, None] != kinds
    ranks = np.argsort(np.argsort(first.values, axis=1), axis=1)[: len(names)]
    signed = np.corrcoef(ranks)[other]
    sizes = np.array(last.values)[: len(names), : len(names)][other]
    told = (
        f"rank correlations across kinds of methods {spread(signed.tolist())} with their signs, on "
        f"one sentence, {spread(sizes.tolist())} of sizes, on reviews"
    )
    return bool(signed.min() < 0 and sizes.min() < 0.75), told


def attention_maps(table: Table) -> Finding:
    """Correlations between the heads of one sentence."""
    maps = [np.corrcoef(panel.values) for panel in table.panels if isinstance(panel, Map)]
    least = [float(found.min()) for found in maps]
    return max(least, default=1) < 0.5, f"least correlation between two heads {spread(least)}"


def histogram(table: Table) -> Finding:
    right, moves = column(table, 1), column(table, 4)
    told = f"accuracy {spread(right, 3)}; attention moves with the text by {spread(moves)}"
    return min(right, default=0) > 0.99 and min(moves) < 0.1 < max(moves), told


def counting(table: Table) -> Finding:
    still, moved = column(table, 1), column(table, 3)
    told = f"moves by less than {max(still, default=1):.0e}; with positions by {spread(moved)}"
    return max(still, default=1) < 1e-10, told


def construction(table: Table) -> Finding:
    off = column(table, 2)
    return max(off, default=1) < 1e-10, f"log-odds off by at most {max(off, default=1):.0e}"
