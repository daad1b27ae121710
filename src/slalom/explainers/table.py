"""The one table of methods: command line, web page and experiments all read it.

A new method is one entry here; the contract tests pick it up from there.
"""

from functools import partial

from slalom.explainers import baselines
from slalom.explainers.base import Explainer
from slalom.explainers.baselines import Baseline
from slalom.explainers.surrogate import FollowUpPlan, QueryBudget, SurrogateExplainer
from slalom.samplers.rivals import Coalitions, Halves, LimeMasks, Permutations
from slalom.samplers.sequences import ShortSequences, SingletonsAndDoubles, SingletonsAndPairs
from slalom.samplers.subsets import AllSubsets, Deletions, SingleRemovals, SubsetSizes
from slalom.surrogates.additive import GamSurrogate, LassoSurrogate, LinearSurrogate
from slalom.surrogates.boosted import BoostedSurrogate
from slalom.surrogates.shapley_estimates import MarginalContributions, Occlusion, ShapleyRegression
from slalom.surrogates.slalom.closed_form import ClosedForm
from slalom.surrogates.slalom.fit import PlainSlalom, SlalomSurrogate
from slalom.surrogates.slalom.optimizers import Adam

LISTED: tuple[Explainer, ...] = (
    SurrogateExplainer(
        "slalom",
        "Default: fits SLALOM to random subsets of all sizes",
        SubsetSizes(),
        SlalomSurrogate(),
        QueryBudget(minimum=300, per_unit=5, maximum=2000),
        follow_up=FollowUpPlan(),
    ),
    SurrogateExplainer(
        "slalom-sources",
        "SLALOM on subsets of uniform sizes, a score per position: for the sources of an answer",
        SubsetSizes(log_uniform=0.0, singles=0.0),
        SlalomSurrogate(length=None),
        QueryBudget(minimum=64, per_unit=5, maximum=400),
        tied=False,
        follow_up=FollowUpPlan(),
    ),
    SurrogateExplainer(
        "slalom-local",
        "Fits SLALOM to the text with up to 10 units removed, one score per position",
        Deletions(10),
        SlalomSurrogate(),
        QueryBudget(minimum=300, per_unit=5, maximum=3000),
        tied=False,
        primary_score="removal",
        follow_up=FollowUpPlan(),
    ),
    SurrogateExplainer(
        "slalom-fast",
        "Fits SLALOM to single units and short sequences: the cheapest",
        ShortSequences(singletons=True),
        SlalomSurrogate(length=None),
        QueryBudget(minimum=200, per_unit=8, maximum=5000),
        follow_up=FollowUpPlan(max_removals=0),
    ),
    SurrogateExplainer(
        "slalom-eff",
        "The paper's SLALOM-eff: short sequences, no anchor",
        ShortSequences(),
        PlainSlalom(),
    ),
    SurrogateExplainer(
        "slalom-fidel",
        "The paper's SLALOM-fidel: up to 5 units removed, no anchor",
        Deletions(5),
        PlainSlalom(),
    ),
    SurrogateExplainer(
        "slalom-adam",
        "The paper's algorithm 1: slalom-eff fitted with Adam, for comparison",
        ShortSequences(),
        PlainSlalom(Adam()),
    ),
    SurrogateExplainer(
        "slalom-analytic",
        "The paper's closed form: single units and pairs, no anchor",
        SingletonsAndPairs(),
        ClosedForm(anchored=False),
        QueryBudget(minimum=2, per_unit=2, maximum=10**6),
    ),
    SurrogateExplainer(
        "slalom-analytic-anchor",
        "The closed form with an anchor: the empty text, single and doubled units",
        SingletonsAndDoubles(),
        ClosedForm(anchored=True),
        QueryBudget(minimum=4, per_unit=4, maximum=10**6),
    ),
    SurrogateExplainer(
        "linear",
        "Ridge regression on random subsets, one coefficient per position",
        SubsetSizes(),
        LinearSurrogate(),
        tied=False,
    ),
    SurrogateExplainer(
        "gam",
        "Additive model on random subsets, with a step for each further occurrence of a word",
        SubsetSizes(),
        GamSurrogate(),
    ),
    SurrogateExplainer(
        "boosted",
        "Gradient-boosted trees of depth 3 on random subsets, with exact Shapley values",
        SubsetSizes(),
        BoostedSurrogate(),
    ),
    SurrogateExplainer(
        "lime",
        "LIME: ridge regression on random removals, weighted by similarity to the text",
        LimeMasks(),
        LinearSurrogate(ridges=(1.0,)),
        tied=False,
    ),
    SurrogateExplainer(
        "kernel-shap",
        "KernelSHAP: Shapley values by weighted regression on random subsets",
        Coalitions(),
        ShapleyRegression(),
        tied=False,
    ),
    SurrogateExplainer(
        "context-cite",
        "ContextCite: LASSO on subsets that show every unit with probability one half",
        Halves(),
        LassoSurrogate(),
        QueryBudget(minimum=64, per_unit=5, maximum=5000),
        tied=False,
    ),
    SurrogateExplainer(
        "permutation-shapley",
        "Shapley values from adding units in random orders and their reverses",
        Permutations(),
        MarginalContributions(),
        QueryBudget(minimum=500, per_unit=20, maximum=10**6),
        tied=False,
    ),
    SurrogateExplainer(
        "exact-shapley",
        "Shapley values from all subsets: up to 14 units, or 20 if the budget allows",
        AllSubsets(),
        ShapleyRegression(),
        QueryBudget(minimum=2**14, per_unit=0, maximum=2**14),
        tied=False,
    ),
    SurrogateExplainer(
        "leave-one-out",
        "Occlusion: the change of the score when one unit is removed",
        SingleRemovals(),
        Occlusion(),
        QueryBudget(minimum=2, per_unit=2, maximum=10**6),
        tied=False,
    ),
    Baseline(
        "gradient-mean",
        "Mean of the gradient with respect to a token's embedding",
        partial(baselines.gradient, read=baselines.mean),
    ),
    Baseline(
        "gradient-l1",
        "L1 norm of the gradient: sensitivity without a sign",
        partial(baselines.gradient, read=baselines.l1),
    ),
    Baseline(
        "gradient-l2",
        "L2 norm of the gradient: sensitivity without a sign",
        partial(baselines.gradient, read=baselines.l2),
    ),
    Baseline(
        "gradient-input",
        "Gradient times embedding",
        partial(baselines.gradient, read=baselines.times_input),
        additive=True,
    ),
    Baseline(
        "integrated-gradients",
        "Gradients integrated along the straight line from the masked text to the text",
        baselines.integrated_gradients,
        additive=True,
    ),
    Baseline(
        "attention-mean",
        "Attention averaged over layers and heads: no sign",
        partial(baselines.attention, pool=baselines.averaged),
    ),
    Baseline(
        "attention-max",
        "Attention, maximum over layers and heads: no sign",
        partial(baselines.attention, pool=baselines.largest),
    ),
    Baseline(
        "attention-rollout",
        "Attention rollout, multiplied through the layers: no sign",
        partial(baselines.attention, pool=baselines.rollout),
    ),
    Baseline(
        "attention-lrp",
        "Attention-aware layer-wise relevance propagation",
        baselines.relevance,
        additive=True,
    ),
    Baseline(
        "attention-gradient",
        "Effect of less attention on a token, in all layers: one backward pass",
        baselines.mask_gradient,
        additive=True,
    ),
    Baseline("random", "Control: random scores", baselines.at_random, looks_inside=False),
    Baseline(
        "constant",
        "Control: no unit matters; every subset scores like the full text",
        baselines.all_zero,
        additive=True,
        looks_inside=False,
    ),
)

METHODS = {method.name: method for method in LISTED}
