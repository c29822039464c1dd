"""Writes pruners.json: decisions of Optuna's pruners over replayed reports.

Run: python3 -m venv V && V/bin/pip install optuna==5.0.0 && V/bin/python pruners.py > pruners.json

"replays": for each report in order [trial, step, value or null for NaN, whether it is pruned, rungs that it then has];
"C" stands for a step when the trial ends complete, and "R" in place of a trial for a new pruner, as after a restart.
"sequential": 200 trials one after the other whose curves never cross, by "levels": how many continue at each rung, and the
steps that all of them took.
"""
import json
import math
import random

import numpy as np
import optuna
from optuna.pruners import HyperbandPruner, SuccessiveHalvingPruner
from optuna.trial import TrialState

optuna.logging.set_verbosity(optuna.logging.ERROR)


def pruner_of(options):
    known = {key: value for key, value in options.items() if key != "type"}
    return (HyperbandPruner if options["type"] == "hyperband" else SuccessiveHalvingPruner)(**known)


def rungs_of(trial):
    return sum(key.startswith("completed_rung_") for key in trial.storage.get_trial(trial._trial_id).system_attrs)


def replay(name, options, direction="minimize", trials=40, workers=1, steps=30, digits=3, stride=1, nan=0.0, restart=0):
    """`workers` trials at a time, each with a report of every `stride`-th step, in a drawn order."""
    rng = random.Random(name)
    study = optuna.create_study(study_name=name, direction=direction, pruner=pruner_of(options))
    running, events = {}, []
    while trials or running:
        if trials and len(running) < workers:
            trial = study.ask()
            running[trial.number] = [trial, 0, rng.uniform(0, 1), rng.randint(steps // 2, steps)]
            trials -= 1
            continue
        if restart and len(events) == restart:
            study.pruner = pruner_of(options)
            events.append(["R"])
        trial, step, level, last = running[rng.choice(list(running))]
        step += stride
        running[trial.number][1] = step
        value = math.nan if rng.random() < nan else round(level + rng.uniform(0, 1) / step, digits)
        trial.report(value, step)
        prunes = trial.should_prune()
        events.append([trial.number, step, None if math.isnan(value) else value, int(prunes), rungs_of(trial)])
        if prunes or step >= last:
            study.tell(trial, state=TrialState.PRUNED if prunes else TrialState.COMPLETE,
                       values=None if prunes else [0.0])
            del running[trial.number]
            if not prunes:
                events.append([trial.number, "C"])
    return {"name": name, "options": options, "goal": direction, "events": events}


def replays():
    asha, hyper = {"type": "asha"}, {"type": "hyperband"}
    yield replay("auto", asha)
    yield replay("auto, long runs", asha, steps=450, trials=8, workers=4, stride=7)
    yield replay("auto, interleaved", asha, workers=8)
    yield replay("auto, restart", asha, steps=400, trials=20, workers=6, stride=25, restart=50)
    yield replay("one by one", {**asha, "min_resource": 1, "reduction_factor": 3})
    yield replay("interleaved", {**asha, "min_resource": 2, "reduction_factor": 2}, workers=10, trials=60)
    yield replay("maximize", {**asha, "min_resource": 1, "reduction_factor": 3}, "maximize", workers=6)
    yield replay("ties", {**asha, "min_resource": 1, "reduction_factor": 4}, workers=5, digits=1, trials=80)
    yield replay("ties, maximize", {**asha, "min_resource": 1, "reduction_factor": 2}, "maximize", workers=5, digits=1)
    yield replay("not a number", {**asha, "min_resource": 4, "reduction_factor": 2}, workers=4, nan=0.15)
    yield replay("bootstrap", {**asha, "min_resource": 1, "reduction_factor": 3, "bootstrap_count": 7}, workers=3,
                 trials=60)
    yield replay("late", {**asha, "min_resource": 1, "reduction_factor": 3, "min_early_stopping_rate": 2}, workers=4)
    yield replay("over several rungs", {**asha, "min_resource": 1, "reduction_factor": 2}, workers=4, stride=5,
                 trials=60)
    yield replay("brackets", {**hyper, "max_resource": 27}, workers=4, trials=80)
    yield replay("brackets, auto", hyper, workers=6)
    yield replay("brackets, restart", {**hyper, "min_resource": 2}, workers=6, restart=200)
    yield replay("brackets, 243", {**hyper, "max_resource": 243}, steps=12, workers=4)
    yield replay("brackets, bootstrap", {**hyper, "max_resource": 16, "reduction_factor": 2, "bootstrap_count": 3},
                 "maximize", workers=4, trials=60, nan=0.03)
    yield replay("no bracket", {**hyper, "min_resource": 40}, trials=4)


def sequential(levels, factor, longest):
    """Curves that never cross: level + 1 / step."""
    study = optuna.create_study(pruner=SuccessiveHalvingPruner(min_resource=1, reduction_factor=factor))
    survivors, steps = {factor**rung: 0 for rung in range(10) if factor**rung <= longest}, 0
    for level in levels:
        trial = study.ask()
        for step in range(1, longest + 1):
            steps += 1
            trial.report(level + 1 / step, step)
            if trial.should_prune():
                break
            if step in survivors:
                survivors[step] += 1
        study.tell(trial, level)
    return {"factor": factor, "longest": longest, "survivors": list(survivors.values()), "steps": steps}


levels = np.argsort(np.argsort(np.random.default_rng(0).random(200))).tolist()
golden = {"optuna": optuna.__version__, "replays": list(replays()), "levels": levels,
          "sequential": [sequential(levels, 3, 27), sequential(levels, 4, 64)]}
print(json.dumps(golden, separators=(",", ":")))
