"""How much of everything: tiny (tests), small (a CI run on two cores), paper (one GPU)."""

from dataclasses import dataclass, replace

from training.synthetic import Exercise


@dataclass(frozen=True)
class Scale:
    name: str
    # synthetic data
    depths: tuple[int, ...]
    n_seeds: int  # of models on synthetic data, where the paper gives ±
    linear: Exercise
    slalom: Exercise  # told the truth
    drawn: Exercise  # the paper's labels
    slalom_depths: tuple[int, ...]
    n_new: int  # samples that surrogates are fitted to
    vocabularies: tuple[int, ...]
    relu_widths: tuple[int, ...]


PAPER = Scale(
    name="paper",
    depths=(1, 2, 6, 12),
    n_seeds=5,
    linear=Exercise(),
    slalom=Exercise(400_000, batch=100, learning_rate=3e-4, told=True),
    drawn=Exercise(400_000),
    slalom_depths=(1, 2, 6, 12),
    n_new=10_000,
    vocabularies=(10, 50, 100, 200),
    relu_widths=(64, 400, 800),
)
SMALL = Scale(
    name="small",
    depths=(1, 2),
    n_seeds=1,
    linear=Exercise(6000, batch=20, learning_rate=1e-3, width=32, n_heads=2),
    slalom=Exercise(60_000, batch=100, learning_rate=3e-3, width=64, n_heads=2, told=True),
    drawn=Exercise(30_000, batch=50, learning_rate=2e-3, width=32, n_heads=2),
    slalom_depths=(1,),
    n_new=2000,
    vocabularies=(10, 40),
    relu_widths=(400,),
)
_TINY = Exercise(400, batch=20, learning_rate=1e-3, width=16, n_heads=2)
TINY = replace(
    SMALL,
    name="tiny",
    depths=(1,),
    linear=_TINY,
    slalom=replace(_TINY, told=True),
    drawn=_TINY,
    n_new=200,
    vocabularies=(10,),
    relu_widths=(400,),
)
SCALES = {scale.name: scale for scale in (SMALL, PAPER, TINY)}
