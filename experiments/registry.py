"""The one table of experiments: every table and figure of the paper, by name.

An entry says which models and parts it needs and how the parts' records become a table. A new
experiment is one entry here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from experiments import (
    asks,
    fidelity,
    gradients,
    linear_data,
    lopardo,
    lopardo_tables,
    people_tables,
    pictures,
    propositions,
    removals,
    review_tables,
    runtime,
    slalom_data,
    synthetic_tables,
    uses,
)
from experiments.bench import Bench, Part, Record
from experiments.reviews import sign_flipped_parts
from experiments.table import Table
from slalom.errors import SlalomError

Parts = Callable[[Bench], dict[str, Part]]
Records = Mapping[str, Record]


@dataclass(frozen=True)
class Entry:
    summary: str
    group: str  # what runs together in one call on a GPU
    parts: tuple[Parts, ...]
    table: Callable[..., Table]  # of the records of each of the parts
    models: Parts | None = None  # trained before the parts that ask them

    def needed(self, bench: Bench) -> dict[str, Part]:
        """Its models and parts."""
        makers = self.parts if self.models is None else (self.models, *self.parts)
        return {name: part for maker in makers for name, part in maker(bench).items()}

    def made(self, bench: Bench) -> Table:
        """The table of the parts there are."""
        records = [bench.found(parts(bench)) for parts in self.parts]
        if not any(records):
            raise SlalomError(f"none of the parts of “{self.summary}” was finished")
        return self.table(*records)


LINEAR, TOLD = linear_data.parts, slalom_data.parts
RECOVERED = (TOLD, slalom_data.drawn_parts, slalom_data.labelled_parts)
CURVES = (asks.paper_parts, sign_flipped_parts)
MANY = (asks.many_parts, gradients.parts)
FILMS, YELP = asks.paper_models, asks.yelp_models


def synthetic(summary: str, parts: tuple[Parts, ...], table: Callable[..., Table]) -> Entry:
    return Entry(summary, "linear" if parts == (LINEAR,) else "slalom", parts, table)


def reviews(
    summary: str,
    parts: Parts | tuple[Parts, ...],
    table: Callable[..., Table],
    models: Parts | None = None,
) -> Entry:
    return Entry(summary, "reviews", parts if isinstance(parts, tuple) else (parts,), table, models)


def theory(summary: str, parts: Parts, table: Callable[..., Table]) -> Entry:
    return Entry(summary, "theory", (parts,), table)


r, s, people = review_tables, synthetic_tables, people_tables
TABLES: dict[str, Entry] = {
    "fig-1": reviews("two words alone and together", pictures.pair_parts, pictures.fig_1, FILMS),
    "fig-3": synthetic('log-odds of k × "perfect"', (LINEAR,), s.fig_3),
    "fig-4": synthetic("surrogates against models and truth", (LINEAR, TOLD), s.fig_4),
    "fig-5": reviews("pictures of reviews", pictures.picture_parts, pictures.fig_5),
    "fig-11": reviews(
        "pictures of reviews, two layers", pictures.two_layer_parts, pictures.fig_11, FILMS
    ),
    "fig-6": synthetic('Shapley values of k × "perfect"', (LINEAR,), s.fig_6),
    "fig-7": synthetic("values and importances of the truths", (slalom_data.truth_parts,), s.fig_7),
    "fig-9": synthetic(
        "closed form against least squares", (TOLD, slalom_data.narrow_parts), s.fig_9
    ),
    "table-2a": reviews(
        "agreement with Naive Bayes", (asks.paper_parts, asks.many_parts), r.table_2a, FILMS
    ),
    "table-2b": reviews("agreement with people (Yelp-HAT)", asks.yelp_parts, people.table_2b, YELP),
    "table-2c": reviews("deletion", CURVES, r.table_2c, FILMS),
    "table-4": reviews(
        "accuracies of the classifiers",
        (asks.compared_models, asks.yelp_parts, asks.larger_parts),
        people.table_4,
    ),
    "table-6": synthetic("linear, GAM, SLALOM on models of linear data", (LINEAR,), s.table_6),
    "table-7": synthetic("log-odds of recovered SLALOMs", RECOVERED, s.table_7),
    "table-8": synthetic("parameters of recovered SLALOMs", RECOVERED, s.table_8),
    "table-9": reviews("insertion", CURVES, r.table_9, FILMS),
    "table-2c-9": reviews("deletion and insertion, 5000 queries", MANY, r.table_2c_9, FILMS),
    "table-10": reviews("a net on TF-IDF", asks.tfidf_parts, r.table_10, asks.tfidf_model),
    "table-11": Entry("seconds", "runtime", (runtime.parts,), runtime.table_11),
    "table-12": reviews("deletion by number of queries", asks.sample_parts, r.table_12, FILMS),
    "table-13": reviews("BLOOM and Mamba against people", asks.larger_parts, people.table_13, YELP),
    "removal": reviews("predicted against true removals", asks.paper_parts, r.removal, FILMS),
    "removal-lrp": reviews(
        "SLALOM-fidel against LRP, paired", removals.parts, removals.removals, FILMS
    ),
    "gradients": reviews(
        "norms, signs and places of gradients", gradients.parts, gradients.gradients, FILMS
    ),
    "black-box": Entry(
        "a classifier behind a chat API", "chat", (uses.black_box_parts,), uses.black_box
    ),
    "case-study": reviews(
        "words that should not matter flip predictions", uses.case_parts, uses.case_table, FILMS
    ),
    "fidelity": reviews(
        "who describes a classifier best", asks.fidelity_parts, fidelity.fidelity, asks.all_models
    ),
    "human": reviews("every method against people", asks.human_parts, people.human),
    "lime-limit": theory(
        "LIME runs on one layer of attention against three formulas for their limit",
        lopardo.lime_parts,
        lopardo_tables.lime_limit,
    ),
    "seven-explainers": theory(
        "seven explainers of one sentence, and how far they agree",
        lopardo.trained_parts,
        lopardo_tables.seven_explainers,
    ),
    "attention-maps": theory(
        "where the heads of one layer look", lopardo.trained_parts, lopardo_tables.attention_maps
    ),
    "histogram": theory(
        "a counting task with two minima", lopardo.histogram_parts, lopardo_tables.histogram
    ),
    "counting": theory(
        "transformers without positions cannot count; what lifts that",
        propositions.counting_parts,
        propositions.counting,
    ),
    "construction": theory(
        "a BERT made of a table of values and importances, and the table read back",
        propositions.construction_parts,
        propositions.construction,
    ),
}
