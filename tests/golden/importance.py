"""Writes importance.txt: studies, and what Optuna's PedAnovaImportanceEvaluator says about their parameters.

Run: python3 -m venv V && V/bin/pip install optuna==5.0.0 && V/bin/python importance.py > importance.txt

Lines: `study NAME GOAL`; `parameter NAME choices COUNT` or `parameter NAME float|int LOW HIGH STEP LOG`, a step of 0 for
none; `run STATE VALUE` with a number for each parameter, the index of a choice, `nan` where it is not set; `shares` with
the importance of each parameter.
"""
import math
import random
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState, create_trial

STATES = 8 * [TrialState.COMPLETE] + [TrialState.PRUNED, TrialState.FAIL]


def mixed(p):
    return (math.log10(p["lr"]) + 3) ** 2 + 0.3 * p["depth"] + (p["optimizer"] == "sgd") + 0.1 * p["dropout"]


def grid(p):
    return p["width"] // 8 + 2 * p["flip"]


def steps(p):
    return abs(p["share"] - 0.4) + (p["momentum"] if p["optimizer"] == "sgd" else 0.7) + 1e-3 * p["batch"]


SPACES = {
    "mixed": (mixed, "minimize", 90, {
        "lr": FloatDistribution(1e-5, 1e-1, log=True), "depth": IntDistribution(1, 9),
        "batch": IntDistribution(1, 300, log=True), "dropout": FloatDistribution(0, 0.7),
        "optimizer": CategoricalDistribution(["sgd", "adam", None])}),
    "grid": (grid, "maximize", 36, {
        "width": CategoricalDistribution([8, 16, 32]), "flip": CategoricalDistribution([True, False]),
        "seed": CategoricalDistribution([1, 2, 3, 4, 5, 6]), "fixed": CategoricalDistribution(["only"])}),
    "steps": (steps, "minimize", 200, {
        "share": FloatDistribution(0, 1, step=0.1), "batch": IntDistribution(32, 500, step=32),
        "optimizer": CategoricalDistribution(["sgd", "adam"]), "momentum": FloatDistribution(0, 1),
        "one": IntDistribution(3, 3)}),
    "few": (mixed, "minimize", 9, {
        "lr": FloatDistribution(1e-4, 1e-2, log=True), "depth": IntDistribution(1, 2, log=True),
        "dropout": FloatDistribution(-1, 1), "optimizer": CategoricalDistribution(["sgd", "adam"])}),
}


def drawn(distribution, number, generator):
    """A value of few digits; choices in turn, so that a grid has each."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[number % len(distribution.choices)]
    low, high = distribution.low, distribution.high
    if distribution.log:
        value = math.exp(generator.uniform(math.log(low), math.log(high)))
        return float(f"{value:.5g}") if isinstance(distribution, FloatDistribution) else round(value)
    if distribution.step:
        return low + distribution.step * generator.randrange(round((high - low) / distribution.step) + 1)
    return round(generator.uniform(low, high), 5)


def study_of(name):
    objective, goal, count, space = SPACES[name]
    generator = random.Random(name)
    study = optuna.create_study(direction=goal, study_name=name)
    for number in range(count):
        params = {key: drawn(distribution, number, generator) for key, distribution in space.items()}
        if name == "grid":
            params["flip"], params["seed"] = number // 3 % 2 == 0, 1 + number // 6
        value = round(objective(params) + (generator.uniform(0, 0.2) if name != "grid" else 0), 5)
        if params.get("optimizer") == "adam":
            params.pop("momentum", None)
        state = STATES[number % 10] if name != "grid" else TrialState.COMPLETE
        study.add_trial(create_trial(
            state=state, value=None if state == TrialState.FAIL else math.inf if number == 41 else value, params=params,
            distributions={key: space[key] for key in params}))
    return study


def parameter_line(key, distribution):
    if isinstance(distribution, CategoricalDistribution):
        return f"parameter {key} choices {len(distribution.choices)}"
    kind = "int" if isinstance(distribution, IntDistribution) else "float"
    return f"parameter {key} {kind} {distribution.low} {distribution.high} {distribution.step or 0} {int(distribution.log)}"


def number_of(distribution, params, key):
    return distribution.to_internal_repr(params[key]) if key in params else math.nan


def main():
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(f"optuna {optuna.__version__}")
    for name, (_, goal, _, space) in SPACES.items():
        study = study_of(name)
        print(f"study {name} {goal}")
        for key, distribution in space.items():
            print(parameter_line(key, distribution))
        for trial in study.get_trials():
            values = [number_of(distribution, trial.params, key) for key, distribution in space.items()]
            print("run", trial.state.name, math.nan if trial.value is None else trial.value, *values)
        shares = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        print("shares", *(repr(float(shares[key])) for key in space))


if __name__ == "__main__":
    main()
