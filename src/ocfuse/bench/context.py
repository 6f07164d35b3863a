"""How a recipe is run on one cell, and measured."""

from collections.abc import Callable
from dataclasses import dataclass

from ocfuse.bench.cells import Results
from ocfuse.bench.measures import measure
from ocfuse.bench.members import Candidates
from ocfuse.bench.recipes import Recipe
from ocfuse.bench.splits import Split
from ocfuse.bench.trial import FloatArray, Trial, prepare


@dataclass(frozen=True)
class Context:
    """What the systems of one cell share; only the measuring looks at the trial.

    Parameters
    ----------
    trial : Trial
        The rows.
    candidates : Candidates
        Members of the paper, fitted when first asked for.
    """

    trial: Trial
    candidates: Candidates


def make_context(X: FloatArray, split: Split) -> Context:
    """Prepare the rows of a split."""
    trial = prepare(X, split)
    return Context(trial, Candidates(trial.known))


def run_recipe(name: str, recipe: Recipe) -> Callable[[Context], Results]:
    """Return what learns by a recipe and measures the result, under a name."""

    def run(context: Context) -> Results:
        """Learn from what is known, and measure on the test."""
        trial = context.trial
        # the recipe is not given the test, and what it has learned only its rows
        model = recipe.learn(context.candidates)
        scores = model.score(trial.known.validation), model.score(trial.test)
        return {name: {**measure(*scores, trial.is_normal), "choices": model.choices}}

    return run
