"""The one table of methods: command line, web page and experiments all read it.

A new method is one entry here; the contract tests pick it up from there.
"""

from functools import partial

from slalom.explainers import attention, gradients
from slalom.explainers.base import Explainer
from slalom.explainers.controls import Control, all_zero, at_random
from slalom.explainers.surrogate import Budget, SurrogateExplainer
from slalom.explainers.white_box import WhiteBox
from slalom.samplers import (
    AllSubsets,
    Coalitions,
    Deletions,
    LimeMasks,
    Permutations,
    ShortSequences,
    SingleRemovals,
    SingletonsAndDoubles,
    SingletonsAndPairs,
    SubsetSizes,
)
from slalom.surrogates.closed_form import ClosedForm
from slalom.surrogates.gam import GamSurrogate
from slalom.surrogates.linear import LinearSurrogate
from slalom.surrogates.shapley_estimates import MarginalContributions, Occlusion, ShapleyRegression
from slalom.surrogates.slalom_fit import SlalomSurrogate
from slalom.surrogates.slalom_solvers import Adam, LevenbergMarquardt

AS_THE_DATA_SAY = LevenbergMarquardt(bounded=False)  # few removals, and the paper's own models

METHODS: dict[str, Explainer] = {
    method.name: method
    for method in (
        SurrogateExplainer(
            "slalom",
            "SLALOM with anchor over random subsets of every size: the default",
            SubsetSizes(),
            SlalomSurrogate(),
            Budget(least=300, a_unit=5, most=2000),
        ),
        SurrogateExplainer(
            "slalom-local",
            "SLALOM with anchor, one feature a position, over deletions of up to 10 units",
            Deletions(10),
            SlalomSurrogate(solver=AS_THE_DATA_SAY),
            Budget(least=300, a_unit=5, most=3000),
            tied=False,
            shown="removal",
        ),
        SurrogateExplainer(
            "slalom-fast",
            "SLALOM with anchor over single units and short sequences: the cheapest",
            ShortSequences(singletons=True),
            SlalomSurrogate(),
            Budget(least=200, a_unit=8, most=5000),
        ),
        SurrogateExplainer(
            "slalom-eff",
            "the paper's SLALOM-eff: no anchor, short sequences",
            ShortSequences(),
            SlalomSurrogate(anchored=False, solver=AS_THE_DATA_SAY),
            Budget(least=500, a_unit=20, most=5000),
        ),
        SurrogateExplainer(
            "slalom-fidel",
            "the paper's SLALOM-fidel: no anchor, deletions of up to 5 units",
            Deletions(5),
            SlalomSurrogate(anchored=False, solver=AS_THE_DATA_SAY),
            Budget(least=500, a_unit=20, most=5000),
        ),
        SurrogateExplainer(
            "slalom-adam",
            "slalom-eff fitted by Adam, the paper's algorithm 1: for comparison",
            ShortSequences(),
            SlalomSurrogate(anchored=False, solver=Adam()),
            Budget(least=500, a_unit=20, most=5000),
        ),
        SurrogateExplainer(
            "slalom-analytic",
            "the paper's closed form: no anchor, single units and pairs",
            SingletonsAndPairs(),
            ClosedForm(anchored=False),
            Budget(least=2, a_unit=3, most=10**6),
        ),
        SurrogateExplainer(
            "slalom-analytic-anchor",
            "the closed form with anchor: the empty text, single and doubled units",
            SingletonsAndDoubles(),
            ClosedForm(anchored=True),
            Budget(least=4, a_unit=4, most=10**6),
        ),
        SurrogateExplainer(
            "linear",
            "ridge regression, one coefficient a position, on the queries of 'slalom'",
            SubsetSizes(),
            LinearSurrogate(),
            Budget(least=500, a_unit=20, most=5000),
            tied=False,
        ),
        SurrogateExplainer(
            "gam",
            "additive model with a step for every further occurrence, on the queries of 'slalom'",
            SubsetSizes(),
            GamSurrogate(),
            Budget(least=500, a_unit=20, most=5000),
        ),
        SurrogateExplainer(
            "lime",
            "LIME: ridge regression on random removals, near texts weighing more",
            LimeMasks(),
            LinearSurrogate(ridges=(1.0,)),
            Budget(least=500, a_unit=20, most=5000),
            tied=False,
        ),
        SurrogateExplainer(
            "kernel-shap",
            "KernelSHAP: Shapley values by weighted regression on coalitions",
            Coalitions(),
            ShapleyRegression(),
            Budget(least=500, a_unit=20, most=5000),
            tied=False,
        ),
        SurrogateExplainer(
            "permutation-shapley",
            "Shapley values by adding units in random orders and their reverses",
            Permutations(),
            MarginalContributions(),
            Budget(least=500, a_unit=20, most=10**6),
            tied=False,
        ),
        SurrogateExplainer(
            "exact-shapley",
            "Shapley values from every subset: up to 14 units, or 20 if the budget allows",
            AllSubsets(),
            ShapleyRegression(),
            Budget(least=2**14, a_unit=0, most=2**14),
            tied=False,
        ),
        SurrogateExplainer(
            "leave-one-out",
            "occlusion: how the score changes when one unit goes",
            SingleRemovals(),
            Occlusion(),
            Budget(least=2, a_unit=2, most=10**6),
            tied=False,
        ),
        WhiteBox(
            "gradient-mean",
            "mean of the gradient by a token's embedding",
            partial(gradients.gradient, read=gradients.mean),
        ),
        WhiteBox(
            "gradient-l1",
            "L1 norm of the gradient: sensitivity, no sign",
            partial(gradients.gradient, read=gradients.l1),
        ),
        WhiteBox(
            "gradient-l2",
            "L2 norm of the gradient: sensitivity, no sign",
            partial(gradients.gradient, read=gradients.l2),
        ),
        WhiteBox(
            "gradient-input",
            "gradient times embedding",
            partial(gradients.gradient, read=gradients.times_input),
            additive=True,
        ),
        WhiteBox(
            "integrated-gradients",
            "gradients summed up on the way from the masked text to the text",
            gradients.integrated_gradients,
            additive=True,
        ),
        WhiteBox(
            "attention-mean",
            "attention, mean over layers and heads: no sign",
            partial(attention.attention, pool=attention.mean),
        ),
        WhiteBox(
            "attention-max",
            "attention, maximum over layers and heads: no sign",
            partial(attention.attention, pool=attention.largest),
        ),
        WhiteBox(
            "attention-rollout",
            "attention, layer after layer: no sign",
            partial(attention.attention, pool=attention.rollout),
        ),
        WhiteBox(
            "attention-lrp",
            "attention-aware layer-wise relevance propagation",
            attention.relevance,
            additive=True,
        ),
        Control("random", "control: random scores", at_random),
        Control(
            "constant",
            "control: no unit matters, every subset scores what the full text does",
            all_zero,
            additive=True,
        ),
    )
}
