"""Table 11: seconds for one explanation, all methods with the same batches.

A BERT with random weights reads one text of about 100 words; every method asks through the same
classifier, which forms the batches. Each is run once to warm up and then three times; the median
counts. Alone on its machine, or the numbers mean little.
"""

from collections.abc import Mapping
from functools import partial
from statistics import median
from time import perf_counter

import slalom
from experiments.bench import Bench, Part, Record
from experiments.table import Cell, Number, Table

Records = Mapping[str, Record]
SAMPLED = ("kernel-shap", "lime", "slalom-eff", "slalom-fast", "slalom")
INSIDE = ("integrated-gradients", "gradient-input")
PAPER = {
    "kernel-shap": (3.89, 13.70, 45.54),
    "lime": (1.55, 4.69, 15.57),
    "slalom-eff": (0.24, 0.71, 2.40),
    "integrated-gradients": (0.05,),
    "gradient-input": (0.01,),
}
N_WORDS, N_PIECES, N_RUNS = 100, 5000, 3


def parts(bench: Bench) -> dict[str, Part]:
    asks = [(method, n) for method in SAMPLED for n in bench.scale.timed]
    asks += [(method, None) for method in INSIDE]
    return {
        f"runtime/{method}/{n or 'one'}": Part(partial(timed, method=method, n_queries=n), n or 0)
        for method, n in asks
    }


def timed(bench: Bench, *, method: str, n_queries: int | None) -> Record:
    classifier, text = _classifier(bench), _text()
    asked = partial(slalom.explain, classifier, text, method, n_queries=n_queries)
    taken = []
    for _ in range(N_RUNS + 1):  # the first run warms up
        start = perf_counter()
        asked()
        taken.append(perf_counter() - start)
    return {
        "method": method,
        "n_queries": n_queries,
        "taken": median(taken[1:]),
    }


def _classifier(bench: Bench) -> slalom.HuggingFaceClassifier:
    import torch
    from training.architectures import ARCHITECTURES, Size
    from training.loop import best_device
    from training.synthetic import word_tokenizer

    n_layers, width = bench.scale.timed_model
    torch.manual_seed(bench.seed)
    model = ARCHITECTURES["bert"](Size(n_layers, width, max(1, width // 64), N_PIECES))
    tokenizer = word_tokenizer(_words(), with_cls=True)
    tokenizer.model_max_length = 512
    place = bench.device or best_device()
    return slalom.HuggingFaceClassifier(model.to(place).eval(), tokenizer)  # type: ignore[arg-type]


def _words() -> tuple[str, ...]:
    return tuple(f"w{number}" for number in range(N_WORDS))


def _text() -> str:
    return " ".join(_words())


def table_11(records: Records) -> Table:
    sizes = sorted({r["n_queries"] for r in records.values() if r["n_queries"]})
    seconds = {(r["method"], r["n_queries"]): r["taken"] for r in records.values()}
    rows: list[tuple[Cell, ...]] = []
    lacking = False
    for method in (*SAMPLED, *INSIDE):
        paper = dict(zip((1000, 3000, 10_000), PAPER.get(method, ()), strict=False))
        if method in INSIDE:
            cells: list[Cell] = [
                Number(seconds.get((method, None)), None, paper.get(1000)),
                *["–"] * (len(sizes) - 1),
            ]
        else:
            cells = [Number(seconds.get((method, n)), None, paper.get(n)) for n in sizes]
        base = seconds.get(("slalom-eff", sizes[-1])) if sizes else None
        own = seconds.get((method, sizes[-1])) if sizes else None
        ratio = Number(own / base, digits=1) if own and base else "–"
        rows.append((method, *cells, ratio))
        lacking = lacking or any(isinstance(c, Number) and c.value is None for c in cells)
    return Table(
        title="Table 11: seconds per explanation of a 6-layer BERT",
        columns=("method", *(f"{n} samples" for n in sizes), "times slalom-eff"),
        rows=tuple(rows),
        notes=(
            *_against(seconds, sizes[-1] if sizes else 0),
            *("Cells that are missing were not measured for want of GPU time.",) * lacking,
        ),
        differs=(
            "Random weights of the same size; all methods through one classifier and its "
            "batches (the paper's SHAP and LIME use their packages' small ones); BLOOM-7B "
            "is not available here. The paper: one A100.",
        ),
    )


def _against(seconds: Mapping[tuple[str, int | None], float], most: int) -> list[str]:
    """How many times as long as SLALOM-eff the rivals take, here and in the paper."""
    rivals, own = ("kernel-shap", "lime"), seconds.get(("slalom-eff", most))
    if own is None or any((method, most) not in seconds for method in rivals):
        return []
    here = [f"{seconds[method, most] / own:.1f}" for method in rivals]
    paper = [f"{PAPER[method][-1] / PAPER['slalom-eff'][-1]:.1f}" for method in rivals]
    return [
        f"Through the same batches KernelSHAP and LIME take {' and '.join(here)} times as long as "
        f"SLALOM-eff with {most} samples; in the paper {' and '.join(paper)} times with 10 000. "
        "So the paper's gap seems to be one of batches."
    ]
