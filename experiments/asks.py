"""Which classifiers are explained by which methods at which budgets: the parts of each table."""

from collections.abc import Iterable

from experiments.bench import Bench, Part
from experiments.classifiers import model_parts
from experiments.reviews import Ask, described_parts, many_review_parts, people_parts, review_parts

OWN = ("slalom-eff", "slalom-fidel", "slalom")
RIVALS = ("lime", "kernel-shap", "attention-lrp", "integrated-gradients", "gradient-input")
TFIDF = ("kernel-shap", "lime", "slalom-eff", "slalom")
FIDELITY = (
    "slalom",
    "lime",
    "kernel-shap",
    "linear",
    "gam",
    "slalom-local",
    "linear-local",
    "boosted",
    "slalom-fast",
    "permutation-shapley",
)
PLAIN = ("lime", "kernel-shap", "linear", "gam")  # which many queries help
HUMAN = (
    "slalom",
    "slalom-eff",
    "lime",
    "kernel-shap",
    "linear",
    "leave-one-out",
    "attention-lrp",
    "gradient-l2",
    "random",
)
REMOVAL = (
    "slalom-fidel",
    "slalom-local",
    "slalom-eff",
    "attention-lrp",
    "lime",
    "kernel-shap",
    "constant",
)
FREE = (
    "attention-lrp",
    "integrated-gradients",
    "gradient-input",
    "gradient-l2",
    "random",
    "constant",
)
N_FEW = 500


def asked(model: str, methods: Iterable[str], budget: int) -> list[Ask]:
    """A classifier with several methods; those that look inside have no budget."""
    return [(model, method, None if method in FREE else budget) for method in methods]


def paper_models(bench: Bench) -> dict[str, Part]:
    return model_parts(bench.scale.models, bench)


def all_models(bench: Bench) -> dict[str, Part]:
    return model_parts((*bench.scale.all_models, *bench.scale.held_out_models), bench)


def yelp_models(bench: Bench) -> dict[str, Part]:
    return model_parts((*bench.scale.yelp_models, *bench.scale.larger), bench)


def tfidf_model(bench: Bench) -> dict[str, Part]:
    return model_parts(("tfidf",), bench)


def compared_models(bench: Bench) -> dict[str, Part]:
    """Those of the paper's tables."""
    return {**paper_models(bench), **yelp_models(bench), **tfidf_model(bench)}


def paper_parts(bench: Bench) -> dict[str, Part]:
    """The paper's three models with every method of tables 2a, 2c, 9 and removal."""
    methods = dict.fromkeys((*OWN, *RIVALS, *REMOVAL))
    asks = [a for model in bench.scale.models for a in asked(model, methods, bench.scale.budget)]
    return review_parts(asks)


def many_parts(bench: Bench) -> dict[str, Part]:
    """Tables 2a, 2c and 9 with the paper's number of queries, on models of their own."""
    methods = ("slalom-eff", "lime", "kernel-shap", "integrated-gradients", "gradient-input")
    scale, found = bench.scale, []
    for model in scale.models:
        found += [*asked(model, methods, scale.many_queries), (model, "slalom", scale.budget)]
    return many_review_parts(found)


def fidelity_parts(bench: Bench) -> dict[str, Part]:
    """Every method with few queries, and the plain ones with many."""
    scale = bench.scale
    budget = min(N_FEW, scale.budget)
    models = (*scale.all_models, *scale.held_out_models)
    asks = [a for method in FIDELITY for model in models for a in asked(model, (method,), budget)]
    if scale.many is not None:
        asks += [(model, method, scale.many) for method in PLAIN for model in models]
    return described_parts(asks)


def sample_parts(bench: Bench) -> dict[str, Part]:
    """Table 12: one model, SHAP at its package's default, SLALOM at several budgets."""
    scale = bench.scale
    default = min(2048 + 2 * scale.words[1], scale.budgets[-1])  # shap: 2 n + 2048
    asks: list[Ask] = [(scale.models[0], "kernel-shap", default)]
    few = [budget for budget in scale.budgets if budget <= scale.budget]
    asks += [(scale.models[0], "slalom-eff", budget) for budget in scale.budgets]
    asks += [(scale.models[0], "slalom", budget) for budget in few]
    return review_parts(asks)


def tfidf_parts(bench: Bench) -> dict[str, Part]:
    return review_parts(asked("tfidf", TFIDF, bench.scale.budget))


def yelp_parts(bench: Bench) -> dict[str, Part]:
    methods = ("slalom-eff", "lime", "kernel-shap")
    asks = [a for m in bench.scale.yelp_models for a in asked(m, methods, bench.scale.budget)]
    return people_parts(asks)


def larger_parts(bench: Bench) -> dict[str, Part]:
    asks = [a for m in bench.scale.larger for a in asked(m, ("slalom-eff",), bench.scale.budget)]
    return people_parts(asks)


def human_parts(bench: Bench) -> dict[str, Part]:
    return people_parts(asked("bundled", HUMAN, min(N_FEW, bench.scale.budget)))
