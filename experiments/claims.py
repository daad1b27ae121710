"""What the paper claims in each table and figure, and what ours says to it, in a line each.

Every number and every verdict is read off the rows (findings.py), so that the overview cannot say
anything else than the tables under it. A claim that they do not bear out has a cause that rows
bear out in turn (causes.py), or is open, with the command that would settle it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from experiments import causes
from experiments import findings as f
from experiments.table import Table

AGREES, WITHIN, DIFFERS, OPEN, NONE = (
    "agrees",
    "agrees within the set-up",
    "differs because",
    "open",
    "not in the paper",
)


@dataclass(frozen=True)
class Claim:
    says: str  # the paper
    found: Callable[[Table], f.Finding]
    within: bool = True  # models, sizes or data are not the paper's, see under the table
    cause: causes.Cause | None = None  # None: not known
    needs: str | None = None  # what the command needs that would tell

    def verdict(self, name: str, tables: causes.Tables) -> tuple[str, str]:
        """In words, and what was found."""
        holds, told = self.found(tables[name])
        if holds is None:
            return NONE, told
        if holds:
            return (WITHIN if self.within else AGREES), told
        cause = None if self.cause is None or told == f.MISSING else self.cause(tables)
        if cause is not None:
            return f"{DIFFERS} {cause}", told
        command = f"python -m experiments {name} --scale paper --data DATA --models MODELS"
        return f"{OPEN}: `{command}`" + (f" with {self.needs}" if self.needs else ""), told


CLAIMS: dict[str, Claim] = {
    "fig-1": Claim("Naive Bayes adds up, transformers do not", f.fig_1),
    "fig-3": Claim(
        "ReLU nets rise by 1.5 per word (its own by 0.6 to 1.3), transformers are flat", f.fig_3
    ),
    "fig-4": Claim("SLALOM describes models better than linear and GAM, and is recovered", f.fig_4),
    "fig-5": Claim(
        "words that matter have high importances, and values of the right sign", f.pictures
    ),
    "fig-11": Claim("the same of a BERT and a GPT-2 of two layers", f.pictures),
    "fig-6": Claim(
        "Shapley values too large in short texts, too small in long ones",
        f.fig_6,
        cause=causes.deep_encoders,
    ),
    "fig-7": Claim(
        "values of the truth of tables 7 and 8: median size .16, largest 1.91; importance 11.8",
        f.fig_7,
    ),
    "fig-9": Claim(
        "closed form and fit equally good in parameters", f.fig_9, cause=causes.cancelled
    ),
    "table-2a": Claim(
        "rank correlation with Naive Bayes: v .69 to .75, s .32 to .43, exp(s)·v .70 to .77",
        f.table_2a,
    ),
    "table-2b": Claim(
        "AU-ROC with people: s .67 to .73, exp(s)·v .64 to .71, v .57 to .68", f.table_2b
    ),
    "table-2c": Claim(
        "deletion: exp(s)·v .908 to .944, ahead of LIME and SHAP; IG poor",
        f.curves(higher=True),
        cause=causes.norms_by_sign,
    ),
    "table-4": Claim("accuracies of .74 to .84 (IMDB) and .89 to .91 (Yelp)", f.table_4),
    "table-6": Claim("SLALOM has the smallest error for all 12 models", f.table_6),
    "table-7": Claim(
        "recovered log-odds: errors × 100 of at most .017",
        f.recovered(0.017, 4),
        cause=causes.size_of_mean("table-7"),
    ),
    "table-8": Claim(
        "recovered parameters: errors × 100 of .09 to 1.65",
        f.recovered(1.65, 2),
        cause=causes.size_of_mean("table-8"),
    ),
    "table-9": Claim(
        "insertion: exp(s)·v .010 to .088, level with LIME and SHAP; IG poor",
        f.curves(higher=False),
        cause=causes.norms_by_sign,
    ),
    "table-2c-9": Claim("tables 2c and 9, with 5000 queries", f.many),
    "table-10": Claim("on a TF-IDF net SLALOM is ahead of LIME and SHAP", f.table_10),
    "table-11": Claim(
        "SHAP 19.0 and LIME 6.5 times as slow as SLALOM",
        f.table_11,
        cause=causes.batches,
    ),
    "table-12": Claim("500 queries suffice for SHAP's quality", f.table_12),
    "table-13": Claim(
        "AU-ROC of BLOOM and Mamba with people: s .71 and .32, exp(s)·v .70 and .70",
        f.table_13,
        needs="BLOOM-7B and Mamba-2.8B in MODELS, and a GPU",
    ),
    "removal": Claim(
        "SLALOM-fidel 41 to 70 % below LRP after ten removals",
        f.removal,
        cause=causes.one_logit,
    ),
    "removal-lrp": Claim(
        "SLALOM-fidel 41 to 70 % below LRP after ten removals",
        f.removal_lrp,
        cause=causes.one_logit,
    ),
    "gradients": Claim("IG .36, .09, .38 and Grad .39, .09, .44 in deletion", f.gradients),
    "black-box": Claim("GPT-4 can be explained through its API", f.black_box),
    "case-study": Claim("words that should not matter flip a prediction", f.case_study),
    "fidelity": Claim("–", f.fidelity),
    "human": Claim("–", f.human),
    "lime-limit": Claim(
        "the printed limit goes through the boxes of five LIME runs",
        f.lime_limit,
        cause=causes.factor,
    ),
    "seven-explainers": Claim("explainers are very un-alike", f.seven),
    "attention-maps": Claim("heads look at different words", f.attention_maps),
    "histogram": Claim("two minima, one with attention that says nothing", f.histogram),
    "counting": Claim(
        "without positions a repeated token changes nothing", f.counting, within=False
    ),
    "construction": Claim("a transformer can be any SLALOM exactly", f.construction, within=False),
}
