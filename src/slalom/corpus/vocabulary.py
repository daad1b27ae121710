"""The vocabulary of a run: its shards' sums added up, written as a `slalom.Vocabulary`."""

import numpy as np

from slalom.corpus.folder import RunFolder
from slalom.corpus.run import Summary
from slalom.corpus.words import WordSums, word_means
from slalom.explainers.vocabulary import Vocabulary
from slalom.explanation import Quality
from slalom.surrogates.slalom.model import Anchor

NAME = "vocabulary.json"
MIN_DOCUMENTS = 2
NOTE = (
    "means over the fits of single documents, drawn towards each other by their errors: no "
    "query was made for it, and it was not judged on unseen documents"
)


def write_vocabulary(folder: RunFolder, sums: WordSums, summary: Summary) -> None:
    """Write the table; a method without values and importances leaves none."""
    found = word_means(sums, MIN_DOCUMENTS)
    if not found.keys:
        return
    settings = (folder.settings() or {})["settings"]
    labels = tuple(settings["labels"])
    rare = None if found.rare is None else Anchor(float(found.rare[0]), float(found.rare[1]))
    Vocabulary(
        tokens=found.tokens,
        keys=found.keys,
        scores={"value": found.means[:, 0], "importance": found.means[:, 1]},
        errors={"value": found.errors[:, 0], "importance": found.errors[:, 1]},
        counts=np.asarray(found.documents, dtype=np.int32),
        rare=rare,
        anchor=None if found.anchor is None else Anchor(found.anchor, 0.0),
        quality=Quality(
            r2=None,
            rmse=None,
            n_queries=summary.n_queries,
            n_tokens=summary.n_tokens,
            seconds=summary.seconds,
            trust="low",
            notes=(NOTE,),
        ),
        n_documents=summary.n_rows - summary.n_failed,
        labels=labels,
        target=settings["target"],
        target_index=labels.index(settings["target"]),
        classifier=settings["model"],
        units=settings["units"],
        seed=settings["seed"],
    ).save(folder.path / NAME)
