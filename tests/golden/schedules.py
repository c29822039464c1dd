"""Writes schedules.txt: the factors that schedules of PyTorch have at each of 1,000 steps.

Run: python3 -m venv V && V/bin/pip install torch==2.15.0 numpy && V/bin/python schedules.py > schedules.txt

A line for each schedule: its name, then the factor at steps 0 to 999; `0.5*7` stands for seven equal ones. `one_cycle` and `one_cycle_momentum` are not
those of PyTorch, whose phases end one step earlier, but what fastai 1.0.61 computes: cosines between the first, the
highest and the last value, over int(steps * 0.3) and all other steps.
"""
import itertools
import math
import warnings

import numpy
import torch
from torch.optim import lr_scheduler as torch_lr

STEPS = 1000
POINTS = [(0.1, 0.5), (0.25, 2.0), (0.6, 1.0), (0.9, 0.125)]


def factors(make):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimizer)
    found = []
    for _ in range(STEPS):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def in_turn(optimizer, parts, milestones):
    return torch_lr.SequentialLR(optimizer, [part(optimizer) for part in parts], milestones)


def fastai(first, peak, last, share=0.3):
    rising = int(STEPS * share)

    def cosine(start, end, part):
        return end + (start - end) / 2 * (1 + math.cos(math.pi * part))

    return [cosine(first, peak, k / rising) if k < rising else cosine(peak, last, (k - rising) / (STEPS - rising))
            for k in range(STEPS)]


def linear(start, end, steps):
    return lambda o: torch_lr.LinearLR(o, start_factor=start, end_factor=end, total_iters=steps)


def cosine(steps, end=0.0):
    return lambda o: torch_lr.CosineAnnealingLR(o, T_max=steps, eta_min=end)


def show(name, values):
    runs = [(text, len(list(equal))) for text, equal in itertools.groupby(f"{value:.8g}" for value in values)]
    print(name, *(text if count == 1 else f"{text}*{count}" for text, count in runs))


warnings.simplefilter("ignore")
SCHEDULES = {
    "linear": linear(1, 0.1, STEPS),
    "cosine": cosine(STEPS, 0.05),
    "cosine_cycles": lambda o: torch_lr.CosineAnnealingWarmRestarts(o, T_0=STEPS // 4),
    "exponential": lambda o: torch_lr.ExponentialLR(o, gamma=0.01 ** (1 / STEPS)),
    "polynomial": lambda o: torch_lr.PolynomialLR(o, total_iters=STEPS, power=2.5),
    "step_milestones": lambda o: torch_lr.MultiStepLR(o, milestones=[300, 650, 900], gamma=0.3),
    "step_every": lambda o: torch_lr.StepLR(o, step_size=70, gamma=0.5),
    "piecewise": lambda o: torch_lr.LambdaLR(o, lambda k: float(numpy.interp(k / STEPS, *zip(*POINTS)))),
    "wsd": lambda o: in_turn(o, [lambda p: torch_lr.ConstantLR(p, factor=1, total_iters=1), linear(1, 0.1, 200)],
                             [800]),
    "warmup_cosine": lambda o: in_turn(o, [linear(1 / 101, 1, 100), cosine(900)], [100]),
    "sequence": lambda o: in_turn(o, [linear(0.1, 1, 250), lambda p: torch_lr.ConstantLR(p, factor=0.5, total_iters=9999),
                                      lambda p: torch_lr.PolynomialLR(p, total_iters=250, power=2)], [250, 750]),
}
for name, make in SCHEDULES.items():
    show(name, factors(make))
show("one_cycle", fastai(1 / 25, 1, 1 / 250000))
show("one_cycle_momentum", fastai(0.95, 0.85, 0.95))
