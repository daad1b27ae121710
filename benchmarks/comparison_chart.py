"""The chart of README.md: `python -m benchmarks.comparison_chart`.

Reads experiments/results/fidelity.json and draws, per classifier, the error of the predicted
log-odds on random parts (sizes drawn uniformly) of SLALOM and of the methods beside it.
"""

import argparse
import io
import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

ROOT = Path(__file__).parent.parent
ROWS = ROOT / "experiments" / "results" / "fidelity.json"
CHART = ROOT / "docs" / "figures" / "comparison.svg"
ERROR = 3  # the column: sizes drawn uniformly
METHODS = {  # method, queries → name, colour, marker
    ("slalom", "500"): ("SLALOM, 500 queries", "#1f66c9", "o"),
    ("boosted", "500"): ("boosted trees, 500", "#7a4fb5", "D"),
    ("gam", "5000"): ("additive model, 5000", "#5b8c5a", "^"),
    ("linear", "5000"): ("linear, 5000", "#8a92a0", "s"),
    ("lime", "5000"): ("LIME, 5000", "#d9861b", "v"),
    ("kernel-shap", "5000"): ("KernelSHAP, 5000", "#b3261e", "X"),
}
NAMES = {
    "bundled": "bundled",
    "minilm-6": "MiniLM, 6 layers",
    "bert-2": "BERT, 2",
    "distilbert-2": "DistilBERT, 2",
    "gpt2-2": "GPT-2, 2",
    "bloom-2": "BLOOM, 2",
    "mamba-1": "Mamba, 1",
    "bert-4 (kept back)": "BERT, 4 (held out)",
    "bloom-1 (kept back)": "BLOOM, 1 (held out)",
}


def chart(rows: list[list[object]]) -> bytes:
    """The picture as SVG, the same bytes for the same rows."""
    found = {(row[0], row[1], row[2]): row[ERROR]["value"] for row in rows}  # type: ignore[index]
    mpl.rcParams["svg.hashsalt"] = "slalom"
    figure = Figure(figsize=(7.4, 4.2), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    places = {model: -place for place, model in enumerate(NAMES)}
    for (method, queries), (name, colour, marker) in METHODS.items():
        errors = [found[model, method, queries] for model in NAMES]
        size = 70 if method == "slalom" else 38
        axes.scatter(
            errors, list(places.values()), s=size, c=colour, marker=marker, label=name, zorder=3
        )
    axes.set_yticks(list(places.values()), list(NAMES.values()))
    axes.set_xscale("log")
    ticks = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="both", color="#dfe4ec", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("squared error of the predicted log-odds, relative to predicting the mean")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    sink = io.BytesIO()
    figure.savefig(sink, format="svg", metadata={"Date": None})
    return sink.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=CHART)
    given = parser.parse_args()
    rows = json.loads(ROWS.read_text(encoding="utf-8"))["table"]["rows"]
    given.out.write_bytes(chart(rows))


if __name__ == "__main__":
    main()
