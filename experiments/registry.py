"""The one table of experiments: every table and figure of the paper, by name.

An entry says which parts it needs and how their records become a table; `run(bench)` does both.
A new experiment is one line here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from experiments import (
    linear_data,
    lopardo,
    lopardo_tables,
    propositions,
    slalom_data,
    synthetic_tables,
)
from experiments.bench import Bench, Part, Record
from experiments.table import Table

Parts = Callable[[Bench], dict[str, Part]]
Records = Mapping[str, Record]


@dataclass(frozen=True)
class Entry:
    summary: str
    group: str  # what runs together in one call on a GPU
    parts: tuple[Parts, ...]
    table: Callable[..., Table]  # of the records of each of the parts

    def run(self, bench: Bench) -> Table:
        return self.table(*(bench.finished(parts(bench)) for parts in self.parts))


LINEAR, TOLD, DRAWN = linear_data.parts, slalom_data.parts, slalom_data.drawn_parts
TABLES: dict[str, Entry] = {
    "fig-3": Entry(
        'log-odds of k × "perfect": flat for transformers, a line for ReLU nets',
        "synthetic",
        (LINEAR,),
        synthetic_tables.fig_3,
    ),
    "fig-4": Entry(
        "surrogates against models, recovered SLALOMs against the truth",
        "synthetic",
        (LINEAR, TOLD),
        synthetic_tables.fig_4,
    ),
    "fig-6": Entry(
        'Shapley values of k × "perfect"', "synthetic", (LINEAR,), synthetic_tables.fig_6
    ),
    "table-6": Entry(
        "linear, GAM and SLALOM fitted to models of linear data",
        "synthetic",
        (LINEAR,),
        synthetic_tables.table_6,
    ),
    "table-7": Entry(
        "log-odds of recovered SLALOMs", "synthetic", (TOLD, DRAWN), synthetic_tables.table_7
    ),
    "table-8": Entry(
        "parameters of recovered SLALOMs", "synthetic", (TOLD, DRAWN), synthetic_tables.table_8
    ),
    "fig-9": Entry(
        "closed form against least squares", "synthetic", (TOLD,), synthetic_tables.fig_9
    ),
    "lime-limit": Entry(
        "LIME runs on one layer of attention against three formulas for their limit",
        "theory",
        (lopardo.lime_parts,),
        lopardo_tables.lime_limit,
    ),
    "seven-explainers": Entry(
        "seven explainers of one sentence, and how far they agree",
        "theory",
        (lopardo.trained_parts,),
        lopardo_tables.seven_explainers,
    ),
    "attention-maps": Entry(
        "where the heads of one layer look",
        "theory",
        (lopardo.trained_parts,),
        lopardo_tables.attention_maps,
    ),
    "histogram": Entry(
        "a counting task with two minima",
        "theory",
        (lopardo.histogram_parts,),
        lopardo_tables.histogram,
    ),
    "counting": Entry(
        "transformers without positions cannot count; what lifts that",
        "theory",
        (propositions.counting_parts,),
        propositions.counting,
    ),
    "construction": Entry(
        "a BERT made of a table of values and importances, and the table read back",
        "theory",
        (propositions.construction_parts,),
        propositions.construction,
    ),
}
