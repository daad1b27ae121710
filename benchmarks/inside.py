"""The one place where benchmarks reach behind the public names of slalom.

What a benchmark needs beyond `slalom.…` is imported here, once, with the reason; a test holds the
other modules to it. Not a benchmark itself.

    Classifier, Delegating     what every classifier offers; a wrapper of one (docs/classifiers.md)
    CachedClassifier           each distinct query is asked once
    Document, FloatArray, …, queries_from_masks    a text cut into units, and its subsets
    write_whole                files are written completely or not at all
    Sampler, SubsetSizes, Deletions    which queries are asked
"""

from slalom.classifiers.base import Classifier, Delegating
from slalom.classifiers.cached import CachedClassifier
from slalom.document import Document, FloatArray, IntArray, Queries, queries_from_masks
from slalom.files import write_whole
from slalom.samplers.base import Sampler
from slalom.samplers.subsets import Deletions, SubsetSizes

__all__ = [
    "CachedClassifier",
    "Classifier",
    "Delegating",
    "Deletions",
    "Document",
    "FloatArray",
    "IntArray",
    "Queries",
    "Sampler",
    "SubsetSizes",
    "queries_from_masks",
    "write_whole",
]
