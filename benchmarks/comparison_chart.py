"""The chart of README.md: `python -m benchmarks.comparison_chart`.

Reads experiments/results/subset_error.json (`python -m benchmarks.subset_error`) and draws, per
classifier, the error of the predicted log-odds on random parts of a review, sizes drawn uniformly:
the mean over the reviews and its standard error, every method fitted to the same 500 queries.
"""

import argparse
import io
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

ROOT = Path(__file__).parent.parent
ROWS = ROOT / "experiments" / "results" / "subset_error.json"
CHART = ROOT / "docs" / "figures" / "comparison.svg"
ERROR = "U"  # sizes drawn uniformly
METHODS = {  # method → name, colour, marker
    "slalom": ("SLALOM", "#1f66c9", "o"),
    "boosted": ("boosted trees", "#7a4fb5", "D"),
    "gam": ("additive model", "#5b8c5a", "^"),
    "linear": ("linear regression", "#8a92a0", "s"),
}
NAMES = {
    "bundled": "bundled, 2 layers",
    "minilm6": "MiniLM, 6",
    "bert-2": "BERT, 2",
    "distilbert-2": "DistilBERT, 2",
    "gpt2-2": "GPT-2, 2",
    "bloom-2": "BLOOM, 2",
    "mamba-1": "Mamba, 1",
}


def chart(rows: dict[str, dict[str, list[dict[str, float]]]]) -> bytes:
    """The picture as SVG, the same bytes for the same rows."""
    mpl.rcParams["svg.hashsalt"] = "slalom"
    figure = Figure(figsize=(7.4, 3.6), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    places = -np.arange(len(NAMES))
    for method, (name, colour, marker) in METHODS.items():
        errors = np.array([[row[ERROR] for row in rows[model][method]] for model in NAMES])
        spread = errors.std(axis=1, ddof=1) / np.sqrt(errors.shape[1])
        size = 9 if method == "slalom" else 6.5
        axes.errorbar(
            errors.mean(axis=1), places, xerr=spread, fmt=marker, ms=size, color=colour, label=name
        )
    axes.set_yticks(places, list(NAMES.values()))
    axes.set_xlim(0.0, 1.0)
    axes.grid(axis="both", color="#dfe4ec", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("squared error of the predicted log-odds (1: predicting the mean)")
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    sink = io.BytesIO()
    figure.savefig(sink, format="svg", metadata={"Date": None})
    return sink.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=CHART)
    given = parser.parse_args()
    given.out.write_bytes(chart(json.loads(ROWS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
