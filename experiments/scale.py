"""The sizes of all experiments: tiny (tests), small (two cores), paper (one GPU)."""

from dataclasses import dataclass, replace

from training.config import TrainingConfig


@dataclass(frozen=True)
class Scale:
    name: str
    # synthetic data
    depths: tuple[int, ...]
    n_seeds: int  # of models on synthetic data, where the paper gives ±
    linear: TrainingConfig
    slalom: TrainingConfig  # on true log-odds
    drawn: TrainingConfig  # on labels drawn from them, as in the paper
    labelled: TrainingConfig  # the same on a quieter truth, small enough for a CPU
    narrow: TrainingConfig | None  # on true log-odds, small enough for a CPU; None: left out
    slalom_depths: tuple[int, ...]
    n_new: int  # samples that surrogates are fitted to
    vocabularies: tuple[int, ...]
    relu_widths: tuple[int, ...]
    # reviews
    n_reviews: int | None  # trained on; None: all
    epochs: int | None  # None: those of the recipes
    n_counted: int  # reviews that Naive Bayes counts over
    n_documents: int  # explained
    words: tuple[int, int]  # bounds of their lengths
    budget: int  # queries per review
    budgets: tuple[int, ...]  # of table 12
    models: tuple[str, ...]  # the paper's three
    all_models: tuple[str, ...]  # of fidelity
    held_out_models: tuple[str, ...]  # of fidelity too: nothing was tuned on these
    n_described: int  # reviews of fidelity
    many: int | None  # a larger budget that fidelity's plain methods are also given
    yelp_models: tuple[str, ...]
    larger: tuple[str, ...]
    removal_models: tuple[str, ...]  # SLALOM-fidel against LRP, settled
    bands: tuple[tuple[int, int], ...]  # words of their reviews
    n_removal_reviews: int  # per band
    n_each: int  # random deletions of each size
    n_gradient_reviews: int
    many_queries: int  # of tables 2c and 9: the paper's
    n_many: int  # reviews explained with that many
    # runtime
    timed: tuple[int, ...]  # samples
    timed_model: tuple[int, int]  # layers, width


PAPER = Scale(
    name="paper",
    depths=(1, 2, 6, 12),
    n_seeds=5,
    linear=TrainingConfig(),
    slalom=TrainingConfig(400_000, batch=100, learning_rate=3e-4, regress=True),
    drawn=TrainingConfig(400_000),
    labelled=TrainingConfig(400_000, learning_rate=3e-4, width=128, n_heads=4),
    narrow=TrainingConfig(
        50_000, batch=100, learning_rate=2e-3, width=128, n_heads=4, regress=True
    ),
    slalom_depths=(1, 2, 6, 12),
    n_new=10_000,
    vocabularies=(10, 50, 100, 200),
    relu_widths=(64, 400, 800),
    n_reviews=None,
    epochs=None,
    n_counted=8000,
    n_documents=50,
    words=(25, 180),
    budget=1000,
    budgets=(500, 1000, 2000, 5000, 10_000),
    models=("distilbert-2", "bert-2", "gpt2-2"),
    all_models=("bundled", "minilm-6", "bert-2", "distilbert-2", "gpt2-2", "bloom-2", "mamba-1"),
    held_out_models=("bert-4", "bloom-1"),
    n_described=24,
    many=5000,
    yelp_models=("yelp-distilbert-1", "yelp-bert-1", "yelp-gpt2-1"),
    larger=("yelp-bloom-1", "yelp-mamba-1"),
    removal_models=("bundled", "bert-2", "distilbert-2", "gpt2-2"),
    bands=((25, 60), (100, 180)),
    n_removal_reviews=50,
    n_each=100,
    n_gradient_reviews=15,
    many_queries=5000,
    n_many=15,
    timed=(1000, 3000, 10_000),
    timed_model=(6, 768),
)
SMALL = Scale(
    name="small",
    depths=(1, 2),
    n_seeds=1,
    linear=TrainingConfig(6000, batch=30, learning_rate=2e-3, width=32, n_heads=2),
    slalom=TrainingConfig(25_000, batch=100, learning_rate=5e-3, width=32, n_heads=2, regress=True),
    drawn=TrainingConfig(10_000, batch=50, learning_rate=2e-3, width=32, n_heads=2),
    labelled=TrainingConfig(10_000, batch=50, learning_rate=2e-3, width=32, n_heads=2),
    narrow=None,
    slalom_depths=(1,),
    n_new=1000,
    vocabularies=(10, 20),
    relu_widths=(400,),
    n_reviews=400,
    epochs=3,
    n_counted=200,
    n_documents=4,
    words=(10, 60),
    budget=150,
    budgets=(100, 300),
    models=("distilbert-2", "bert-2", "gpt2-2"),
    all_models=("bundled", "bert-2"),
    held_out_models=(),
    n_described=4,
    many=None,
    yelp_models=("yelp-bert-1",),
    larger=("yelp-bloom-1",),
    removal_models=("bundled",),
    bands=((15, 40),),
    n_removal_reviews=4,
    n_each=10,
    n_gradient_reviews=3,
    many_queries=300,
    n_many=3,
    timed=(100, 300),
    timed_model=(2, 64),
)
_TINY = TrainingConfig(400, batch=20, learning_rate=1e-3, width=16, n_heads=2)
TINY = replace(
    SMALL,
    name="tiny",
    depths=(1,),
    linear=_TINY,
    slalom=replace(_TINY, regress=True),
    drawn=_TINY,
    labelled=_TINY,
    n_new=200,
    vocabularies=(10,),
    relu_widths=(400,),
    n_reviews=60,
    epochs=1,
    n_counted=30,
    n_documents=2,
    n_described=2,
    words=(5, 26),
    budget=100,
    budgets=(60,),
    models=("bert-1",),
    all_models=("bert-1",),
    removal_models=("bert-1",),
    bands=((12, 26),),
    n_removal_reviews=2,
    n_each=4,
    n_gradient_reviews=2,
    many_queries=120,
    n_many=2,
    timed=(50,),
    timed_model=(1, 16),
)
SCALES = {scale.name: scale for scale in (SMALL, PAPER, TINY)}
