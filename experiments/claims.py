"""What the paper claims in each table and figure, and what ours says to it, in a line each.

Knows finished Tables only: every number and every verdict is read off the rows, so that the
overview cannot say anything else than the tables under it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from experiments.table import Map, Number, Table

AGREES, IN_PART, AGAINST, NONE = "agrees", "in part", "**contradicts**", "–"
SLACK = 0.005  # of a mean of 1 − p: less is a tie
Finding = tuple[str, str]  # a verdict and what was found


@dataclass(frozen=True)
class Claim:
    says: str  # the paper
    found: Callable[[Table], Finding]


def column(table: Table, at: int, *, only: Sequence[str] = (), name_at: int = 0) -> list[float]:
    """The numbers of a column, of those rows whose name holds one of `only`."""
    rows = [r for r in table.rows if not only or any(part in str(r[name_at]) for part in only)]
    cells = [row[at] for row in rows]
    return [c.value for c in cells if isinstance(c, Number) and c.value is not None]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The smallest and the largest, in words."""
    if not values:
        return "not measured"
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def judged(n_true: int, n_all: int) -> str:
    if not n_all:
        return NONE
    return AGREES if n_true == n_all else IN_PART if n_true else AGAINST


def picture(_: Table) -> Finding:
    return NONE, "a picture"


TRANSFORMERS = ("BERT", "GPT-2")  # DistilBERT too


def fig_1(table: Table) -> Finding:
    def gaps(*names: str) -> list[float]:
        whole, parts = column(table, 5, only=names), column(table, 4, only=names)
        return [abs(a - b) for a, b in zip(whole, parts, strict=True)]

    plain, deep = gaps("naive-bayes"), gaps("bert", "gpt2")
    told = f"off by {spread(plain)} for Naive Bayes, by {spread(deep)} for transformers"
    return judged(max(plain, default=0) < 0.01 < min(deep, default=0), 1), told


def fig_3(table: Table) -> Finding:
    flat, nets = column(table, 7, only=TRANSFORMERS), column(table, 7, only=("ReLU",))
    told = f"slopes {spread(flat)} for transformers, {spread(nets)} for ReLU nets"
    right = [max(flat, default=1) < 0.15, bool(nets) and min(nets) > 1.2]
    return judged(sum(right), 2), told


def fig_4(table: Table) -> Finding:
    linear, gam, own, _, recovered = (column(table, at) for at in range(1, 6))
    ahead = [o > max(a, b) for a, b, o in zip(linear, gam, own, strict=True)]
    told = (
        f"SLALOM nearest to {sum(ahead)} of {len(ahead)} models; "
        f"recovered importances correlate by {spread(recovered, 4)}"
    )
    return judged(sum(ahead), len(ahead)), told


def fig_6(table: Table) -> Finding:
    short, long = (column(table, at, only=TRANSFORMERS) for at in (1, len(table.columns) - 1))
    nets = column(table, len(table.columns) - 1, only=("ReLU",))
    right = [s > 1.5 for s in short] + [v < 1.5 for v in long]
    told = (
        f"transformers {spread(short)} in one word, {spread(long)} each in fourteen; "
        f"ReLU nets {spread(nets)}"
    )
    return judged(sum(right), len(right)), told


def fig_9(table: Table) -> Finding:
    closed, fitted = column(table, 3), column(table, 4)
    told = (
        f"error of importances {spread(closed, 3)} by the closed form, {spread(fitted, 5)} fitted"
    )
    return judged(max(closed, default=1) < 2 * max(fitted, default=0), 1), told


def table_2a(table: Table) -> Finding:
    faces = [column(table, at, only=("SLALOM-eff",), name_at=1) for at in (2, 3, 4)]
    told = "v {}, s {}, exp(s)·v {}".format(*map(spread, faces))
    order = [s < v <= lin for v, s, lin in zip(*faces, strict=True)]
    return judged(sum(order), len(order)), told


def table_2b(table: Table) -> Finding:
    v, s, lin = (column(table, at) for at in (1, 2, 3))
    right = [a < max(b, c) for a, b, c in zip(v, s, lin, strict=True)]
    return judged(sum(right), len(right)), f"s {spread(s)}, exp(s)·v {spread(lin)}, v {spread(v)}"


def table_13(table: Table) -> Finding:
    v, s, lin = (column(table, at) for at in (1, 2, 3))
    told = f"s {spread(s)}, exp(s)·v {spread(lin)}, v {spread(v)}"
    right = [value > 0.6 for value in lin]
    right += [value > 0.6 for value in s[:1]] + [value < 0.5 for value in s[1:]]  # BLOOM, Mamba
    return judged(sum(right), len(right)), told


def curves(*, higher: bool) -> Callable[[Table], Finding]:
    """exp(s)·v against LIME and SHAP, and whether gradients do badly."""

    def found(table: Table) -> Finding:
        sign = 1 if higher else -1
        own, lime, shap, gradients = (column(table, at) for at in (3, 4, 5, 6))
        level = [
            sign * (a - max(b, c, key=lambda value: sign * value)) > -SLACK
            for a, b, c in zip(own, lime, shap, strict=True)
        ]
        poor = [sign * (a - b) > 0.1 for a, b in zip(own, gradients, strict=True)]
        told = (
            f"exp(s)·v {spread(own, 3)}, not behind LIME and SHAP on {sum(level)} of "
            f"{len(level)}; IG {spread(gradients, 3)}"
        )
        return judged(sum(level) + sum(poor), len(level) + len(poor)), told

    return found


def table_4(table: Table) -> Finding:
    films, restaurants = column(table, 2), column(table, 3)
    return NONE, f"{spread(films)} (IMDB) and {spread(restaurants)} (Yelp-HAT)"


def table_6(table: Table) -> Finding:
    linear, gam, own = (column(table, at) for at in (1, 2, 3))
    ahead = [o < min(a, b) for a, b, o in zip(linear, gam, own, strict=True)]
    told = f"SLALOM has the smallest error for {sum(ahead)} of {len(ahead)} models"
    return judged(sum(ahead), len(ahead)), told


def recovered(within: float, digits: int) -> Callable[[Table], Finding]:
    """Errors of models that were told the truth, and of those with the paper's labels."""

    def found(table: Table) -> Finding:
        labelled = [r for r in table.rows if "drawn" in str(r[0])]
        told, drawn = (
            [c.value for r in rows for c in r if isinstance(c, Number) and c.value is not None]
            for rows in ([r for r in table.rows if r not in labelled], labelled)
        )
        right = [bool(values) and max(values) <= within for values in (told, drawn)]
        words = f"{spread(told, digits)} told the truth, {spread(drawn, 1)} with drawn labels"
        return judged(sum(right), 2), words

    return found


def table_10(table: Table) -> Finding:
    insertion, deletion = column(table, 1), column(table, 2)
    if len(deletion) < 3:
        return NONE, "not measured"
    shap, lime, own = deletion[:3]
    right = [own > max(shap, lime) - SLACK, insertion[2] < min(insertion[:2]) + SLACK]
    told = (
        f"deletion {own:.3f} against {lime:.3f} (LIME) and {shap:.3f} (SHAP); "
        f"insertion {insertion[2]:.3f} against {insertion[1]:.3f} and {insertion[0]:.3f}"
    )
    return judged(sum(right), 2), told


def table_11(table: Table) -> Finding:
    at = len(table.columns) - 1
    shap, lime = (column(table, at, only=(name,)) for name in ("kernel-shap", "lime"))
    if not shap or not lime:
        return NONE, "not measured"
    told = f"{shap[0]:.1f} and {lime[0]:.1f} times, through the same batches"
    return judged((shap[0] > 2) + (lime[0] > 2), 2), told


def table_12(table: Table) -> Finding:
    shap, own = column(table, 2, only=("SHAP",)), column(table, 2, only=("SLALOM-eff",))
    if not shap or len(own) < 2:
        return NONE, "not measured"
    told = f"500 questions {own[0]:.4f}, 1000 questions {own[1]:.4f}, SHAP {shap[0]:.4f}"
    return judged((own[0] >= shap[0]) + (own[1] >= shap[0]), 2), told


def removal(table: Table) -> Finding:
    def at_ten(method: str) -> list[float]:
        return column(table, 4, only=(method,), name_at=1)

    lrp = at_ten("LRP")
    fidel, local = (
        [a / b - 1 for a, b in zip(at_ten(name), lrp, strict=True)]
        for name in ("SLALOM-fidel", "slalom-local")
    )
    told = f"{_percent(fidel)} against LRP; our `slalom-local` {_percent(local)}"
    return judged(sum(gap < -0.3 for gap in fidel), len(lrp)), told


def _percent(gaps: Sequence[float]) -> str:
    return f"{100 * min(gaps, default=0):+.0f} to {100 * max(gaps, default=0):+.0f} %"


def black_box(table: Table) -> Finding:
    ranks = column(table, len(table.columns) - 1)
    return (
        NONE,
        f"a server here instead of GPT-4; rank correlation {spread(ranks)} with asking directly",
    )


def case_study(table: Table) -> Finding:
    def counts(at: int) -> tuple[int, int]:
        pairs = [str(row[at]).split(" of ") for row in table.rows]
        return sum(int(a) for a, _ in pairs), sum(int(b) for _, b in pairs)

    found, random = counts(3), counts(6)
    told = "{} of {} reviews flipped, by random words {} of {}".format(*found, *random)
    return judged(found[0] > 2 * random[0], 1), told


def fidelity(table: Table) -> Finding:
    """On how many classifiers all rivals with the most questions have larger subset errors."""
    most = max((str(row[2]) for row in table.rows), key=int, default="0")
    models = list(dict.fromkeys(str(row[0]) for row in table.rows))
    ahead = 0
    for model in models:
        here = replace(table, rows=tuple(row for row in table.rows if row[0] == model))
        rivals = replace(here, rows=tuple(r for r in here.rows if r[2] == most))
        own = replace(here, rows=tuple(r for r in here.rows if r[1] == "slalom"))
        ahead += all(min(column(own, at)) < min(column(rivals, at)) for at in (3, 4))
    told = f"`slalom` ahead of all with {most} questions on {ahead} of {len(models)} classifiers"
    return NONE, told


def human(table: Table) -> Finding:
    return NONE, f"AU-ROC {spread(column(table, 2, only=('slalom',)))} for slalom's scores"


def lime_limit(table: Table) -> Finding:
    exact, printed = column(table, 4), column(table, 6)
    told = f"off by {spread(printed)}; our exact form by {spread(exact)}"
    return judged(sum(p < 0.1 for p in printed), len(printed)), told


def seven(table: Table) -> Finding:
    """The last picture holds the rank correlations of all pairs."""
    pairs = table.panels[-1] if table.panels else None
    if not isinstance(pairs, Map):
        return NONE, "not measured"
    found = [v for at, row in enumerate(pairs.values) for v in row[:at]]
    return judged(sum(v < 0.9 for v in found), len(found)), f"rank correlations {spread(found)}"


def histogram(table: Table) -> Finding:
    right, moves = column(table, 1), column(table, 4)
    told = f"accuracy {spread(right, 3)}; attention moves with the text by {spread(moves)}"
    return judged(min(right, default=0) > 0.99 and min(moves) < 0.1 < max(moves), 1), told


def counting(table: Table) -> Finding:
    still, moved = column(table, 1), column(table, 3)
    told = f"moves by less than {max(still, default=1):.0e}; with positions by {spread(moved)}"
    return judged(max(still, default=1) < 1e-10, 1), told


def construction(table: Table) -> Finding:
    off = column(table, 2)
    return judged(
        max(off, default=1) < 1e-10, 1
    ), f"log-odds off by at most {max(off, default=1):.0e}"


CLAIMS: dict[str, Claim] = {
    "fig-1": Claim("Naive Bayes adds up, transformers do not", fig_1),
    "fig-3": Claim("ReLU nets follow the slope 1.5, transformers are flat", fig_3),
    "fig-4": Claim("SLALOM describes models better than linear and GAM, and is recovered", fig_4),
    "fig-5": Claim("words that matter stand out in both scores", picture),
    "fig-6": Claim("Shapley values too large in short texts, too small in long ones", fig_6),
    "fig-9": Claim("closed form and fit equally good in parameters", fig_9),
    "table-2a": Claim(
        "rank correlation with Naive Bayes: v .69 to .75, s .32 to .43, exp(s)·v .70 to .77",
        table_2a,
    ),
    "table-2b": Claim(
        "AU-ROC with people: s .67 to .73, exp(s)·v .64 to .71, v .57 to .68", table_2b
    ),
    "table-2c": Claim(
        "deletion: exp(s)·v .908 to .944, ahead of LIME and SHAP; IG poor", curves(higher=True)
    ),
    "table-4": Claim("accuracies of .74 to .84 (IMDB) and .89 to .91 (Yelp)", table_4),
    "table-6": Claim("SLALOM has the smallest error for all 12 models", table_6),
    "table-7": Claim("recovered log-odds: errors × 100 of at most .017", recovered(0.017, 4)),
    "table-8": Claim("recovered parameters: errors × 100 of .09 to 1.65", recovered(1.65, 2)),
    "table-9": Claim(
        "insertion: exp(s)·v .010 to .088, level with LIME and SHAP; IG poor", curves(higher=False)
    ),
    "table-10": Claim("on a TF-IDF net SLALOM is ahead of LIME and SHAP", table_10),
    "table-11": Claim("SHAP 19.0 and LIME 6.5 times as slow as SLALOM", table_11),
    "table-12": Claim("500 questions suffice for SHAP's quality", table_12),
    "table-13": Claim(
        "AU-ROC of BLOOM and Mamba with people: s .71 and .32, exp(s)·v .70 and .70", table_13
    ),
    "removal": Claim("SLALOM-fidel 41 to 70 % below LRP after ten removals", removal),
    "black-box": Claim("GPT-4 can be explained through its API", black_box),
    "case-study": Claim("words that should not matter flip a prediction", case_study),
    "fidelity": Claim(NONE, fidelity),
    "human": Claim(NONE, human),
    "lime-limit": Claim("the printed limit goes through the boxes of five LIME runs", lime_limit),
    "seven-explainers": Claim("explainers are very un-alike", seven),
    "attention-maps": Claim("heads look at different words", picture),
    "histogram": Claim("two minima, one with attention that says nothing", histogram),
    "counting": Claim("without positions a repeated token changes nothing", counting),
    "construction": Claim("a transformer can be any SLALOM exactly", construction),
}
