"""Fits of many documents at once, on a device: the search of path.py, the last descent, the folds.

The documents' searches go on side by side: in every round those that want the same kind of answer
get it together. A GPU takes about as long for fifty of them as for one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.descent import STEP_BOUND
from slalom.surrogates.slalom.folds import CLOSE, FINE, N_FINE_STEPS, N_STEPS, N_STEPS_AFAR, in_turn
from slalom.surrogates.slalom.folds import TOLERANCE as FOLD_TOLERANCE
from slalom.surrogates.slalom.on_device.descent import Sliding, approach, descend, slide
from slalom.surrogates.slalom.on_device.left_out import (
    Folds,
    errors,
    forecasts,
    linearised,
    shifts_without,
)
from slalom.surrogates.slalom.on_device.posed import Found, Posed
from slalom.surrogates.slalom.on_device.problems import (
    Problems,
    Ridges,
    States,
    Tensor,
    inverse_of,
    project,
)
from slalom.surrogates.slalom.path import (
    Beside,
    Forecast,
    FromAfar,
    FromPrior,
    Trial,
    Wanted,
    search,
)
from slalom.surrogates.slalom.problem import LARGE
from slalom.surrogates.slalom.trials import (
    FIRST_STEPS,
    FIRST_TOLERANCE,
    LAST_STEPS,
    LAST_TOLERANCE,
    START,
    STEPS_BESIDE,
    STEPS_FROM_AFAR,
    TOLERANCE,
)

Answer = Trial | float
KINDS = FromPrior, FromAfar, Beside, Forecast  # in which order a round answers them


def wake(device: str) -> None:
    """Load torch and start a GPU, which takes seconds; one thread tells it what to do."""
    import torch

    torch.set_num_threads(1)
    torch.linalg.cholesky(torch.eye(2, dtype=torch.double, device=device)[None])


def fits_on(device: str, given: Sequence[Posed]) -> list[Found]:
    """One fit per document."""
    import torch

    found: dict[int, Found] = {}
    with torch.inference_mode():
        for numbers in _batches(given, device):
            batch = [given[number] for number in numbers]
            found.update(zip(numbers, _fits(batch, device), strict=True))
    return [found[number] for number in range(len(given))]


def _fits(given: Sequence[Posed], device: str) -> list[Found]:
    problems = Problems.of(given, device)
    best = Trials(problems, given).searched()
    ridges = problems.ridges(
        [trial.pulls for trial in best], anchor=[trial.error for trial in best]
    )
    begin = problems.in_gauge(_on(problems, [trial.importances for trial in best]))
    states = project(problems, begin, ridges)
    states = descend(problems, states, ridges, n_steps=LAST_STEPS, tolerance=LAST_TOLERANCE)
    folds = [in_turn(one.judged) for one in given]
    without = _Ends(problems, states, ridges, given).without(folds)
    importances = states.importances.cpu().numpy()
    return [
        Found(trial.strengths, trial.error, ended[: one.size[1]], said[:, : one.size[0]])
        for trial, ended, said, one in zip(best, importances, without, given, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Trials:
    """What searches want to know, for all documents that want it."""

    problems: Problems
    given: Sequence[Posed]

    def searched(self) -> list[Trial]:
        """Where each document's search ends."""
        searches = [search(START, parts=one.length is not None, mild=False) for one in self.given]
        wanted: dict[int, Wanted] = {at: next(one) for at, one in enumerate(searches)}
        best: dict[int, Trial] = {}
        while wanted:
            for kind in KINDS:
                chosen = {at: wanted.pop(at) for at, one in [*wanted.items()] if type(one) is kind}
                for at, answer in zip(chosen, self._alike(chosen) if chosen else (), strict=True):
                    try:
                        wanted[at] = searches[at].send(answer)
                    except StopIteration as end:
                        best[at] = end.value
        return [best[at] for at in range(len(searches))]

    def _alike(self, wanted: dict[int, Any]) -> Sequence[Answer]:
        """Answers of one kind."""
        problems = self.problems.pick(_numbers(self.problems, list(wanted)))
        given = [self.given[at] for at in wanted]
        pulls = [
            one.strengths.pulls(doc.variances)
            for one, doc in zip(wanted.values(), given, strict=True)
        ]
        ridges, asked = problems.ridges(pulls), list(wanted.values())
        if isinstance(asked[0], Forecast):
            before = problems.ridges([one.trial.pulls for one in asked])
            begin = _on(problems, [one.trial.importances for one in asked])
            states = project(problems, begin, before)
            return [float(error) for error in forecasts(problems, states, ridges).tolist()]
        states = _descended(problems, ridges, asked)
        near = linearised(problems, states, ridges)
        error = errors(problems, states.residuals / near.kept).tolist()
        importances = states.importances.cpu().numpy()
        return [
            Trial(one.strengths, pull, ended[: doc.size[1]], missed, exact=True)
            for one, pull, ended, missed, doc in zip(
                asked, pulls, importances, error, given, strict=True
            )
        ]


def _descended(problems: Problems, ridges: Ridges, asked: Sequence[Any]) -> States:
    """Where trials of one kind end."""
    if isinstance(asked[0], FromPrior):
        states = project(problems, problems.importance_prior, ridges)
        return approach(problems, states, ridges, n_steps=FIRST_STEPS, tolerance=FIRST_TOLERANCE)
    afar = isinstance(asked[0], FromAfar)
    begin = [one.importances if afar else one.trial.importances for one in asked]
    return descend(
        problems,
        project(problems, _on(problems, begin), ridges),
        ridges,
        n_steps=STEPS_FROM_AFAR if afar else STEPS_BESIDE,
        tolerance=TOLERANCE,
        near=not afar,
    )


@dataclass(frozen=True, eq=False)
class _Ends:
    """Where fits ended: _End of folds.py."""

    problems: Problems
    states: States
    ridges: Ridges
    given: Sequence[Posed]

    def without(self, folds: Sequence[Any]) -> list[FloatArray]:
        """(n_folds, n) per document: what fits without each fold say of all rows."""
        squares = self.states.residuals.square().sum(1).tolist()
        fine = [
            square <= CLOSE * one.size[0] or one.size[0] * one.size[1] ** 2 <= LARGE
            for square, one in zip(squares, self.given, strict=True)
        ]
        found: dict[int, FloatArray] = {}
        for exact in (True, False):
            at = [number for number, one in enumerate(fine) if one is exact]
            if at:
                found.update(self._alike(at, [folds[number] for number in at], exact=exact))
        return [found[number] for number in range(len(self.given))]

    def _alike(
        self, at: Sequence[int], folds: Sequence[Any], *, exact: bool
    ) -> Iterator[tuple[int, FloatArray]]:
        chosen = _numbers(self.problems, at)
        problems, ridges = self.problems.pick(chosen), self.ridges.pick(chosen)
        states = project(problems, self.states.importances[chosen], ridges)
        left = _folds(problems, folds)
        kept, strengths = (
            problems.pick(left.document).without(left.kept),
            ridges.pick(left.document),
        )
        ended = (
            _fine(kept, states.importances[left.document], strengths)
            if exact
            else _slid(problems, states, ridges, left, kept, strengths)
        )
        said = (kept.scores - ended.residuals).cpu().numpy()
        ends = np.cumsum([int(one.max()) + 1 for one in folds])
        return zip(at, np.split(said, ends[:-1]), strict=True)


def _fine(kept: Problems, importances: Tensor, ridges: Ridges) -> States:
    states = project(kept, importances, ridges)
    return descend(kept, states, ridges, n_steps=N_FINE_STEPS, tolerance=FINE)


def _slid(
    problems: Problems,
    states: States,
    ridges: Ridges,
    left: Folds,
    kept: Problems,
    strengths: Ridges,
) -> States:
    """From where linear fits would go without the folds, if that is downhill."""
    import torch

    near, at = linearised(problems, states, ridges), left.document
    shift = shifts_without(near, states, problems, folds=left)
    here = states.importances[at]
    guess = kept.in_gauge(here + shift.clamp(-STEP_BOUND, STEP_BOUND))
    guessed, stayed = project(kept, guess, strengths), project(kept, here, strengths)
    missed = (problems.weights * states.residuals.square())[at] * (1.0 - left.kept)
    good = guessed.objective < states.objective[at] - missed.sum(1)
    begun = guessed.where(good, stayed)
    n_steps = torch.where(good, N_STEPS, N_STEPS_AFAR)
    sliding = Sliding(inverse_of(near.root)[at], torch.ones_like(good))
    return slide(kept, begun, strengths, sliding=sliding, n_steps=n_steps, tolerance=FOLD_TOLERANCE)


def _folds(problems: Problems, folds: Sequence[Any]) -> Folds:
    import torch

    rows = [
        (document, np.flatnonzero(numbers == fold))
        for document, numbers in enumerate(folds)
        for fold in range(int(numbers.max()) + 1)
    ]
    n, most = problems.scores.shape[1], max(len(left) for _, left in rows)
    places = np.zeros((len(rows), most), np.int64)
    real, kept = np.zeros((len(rows), most)), np.ones((len(rows), n))
    for at, (_, left) in enumerate(rows):
        places[at, : len(left)], real[at, : len(left)], kept[at, left] = left, 1.0, 0.0
    device = problems.scores.device
    document = torch.tensor([document for document, _ in rows], device=device)
    return Folds(document, *(torch.from_numpy(one).to(device) for one in (places, real, kept)))


def _numbers(problems: Problems, at: Sequence[int]) -> Tensor:
    import torch

    return torch.tensor(list(at), device=problems.scores.device)


def _on(problems: Problems, importances: Sequence[FloatArray]) -> Tensor:
    """(B, k) padded, on the device."""
    import torch

    k = problems.counts.shape[2]
    rows = np.stack([np.pad(one, (0, k - len(one))) for one in importances])
    return torch.from_numpy(rows).to(problems.counts.device)


MAX_NUMBERS = 2**30  # at once, of all arrays: 8 GB in double precision
ARRAYS = 10  # of the largest size, at most


def _batches(given: Sequence[Posed], device: str) -> list[list[int]]:
    """Documents of about the same size, as many as the memory holds with all their folds."""
    room = min(MAX_NUMBERS, _free_numbers(device))
    order = sorted(range(len(given)), key=lambda number: given[number].size[1:])
    batches: list[list[int]] = []
    for number in order:
        n, k, f = given[number].size
        size = ARRAYS * 8 * (k + f) * max(n, k + f)
        if batches and (len(batches[-1]) + 1) * size <= room:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches


def _free_numbers(device: str) -> int:
    import torch

    if not device.startswith("cuda"):
        return MAX_NUMBERS
    return int(torch.cuda.mem_get_info(device)[0]) // (2 * 8)
