"""Writes lr_find.json: losses of searches for a learning rate, and what fastai's rules make of them.

Run: python3 -m venv V && V/bin/pip install numpy && V/bin/python lr_find.py > lr_find.json

The rules are those of fastai 2.8: the loss is smoothed with a decay of 0.98 and corrected for the number of losses; the
search ends after the first smoothed loss above four times the lowest; the suggestions leave out the first ten points
and the last five. `valley` looks for the longest series of falling losses, which need not follow one another.
"""
import json
import math

import numpy

STEPS = 100


def smoothed(losses):
    mean, best, found = 0.0, None, []
    for count, loss in enumerate(losses, 1):
        mean = 0.98 * mean + 0.02 * loss
        found.append(mean / (1 - 0.98**count))
        best = found[-1] if best is None else min(best, found[-1])
        if found[-1] > 4 * best:
            break
    return found


def valley(rates, losses):
    length = [1] * len(losses)
    for end in range(len(losses)):
        before = [length[i] for i in range(end) if losses[end] < losses[i]]
        length[end] = 1 + max(before, default=0)
    longest = max(length)
    end = length.index(longest)
    third = longest / 3
    return rates[end - longest + int(third) + int(third / 2)]


def search(name, losses):
    curve = smoothed(losses)
    rates = [1e-7 * 1e8 ** (i / STEPS) for i in range(len(curve))]
    skipped = STEPS // 10
    kept, rates = numpy.array(curve[skipped:-5]), rates[skipped:-5]
    slopes = (kept[1:] - kept[:-1]) / (numpy.log(rates[1:]) - numpy.log(rates[:-1]))
    return {"name": name, "losses": losses, "smoothed": curve, "valley": valley(rates, kept.tolist()),
            "steepest": rates[int(slopes.argmin())], "minimum": rates[int(kept.argmin())] / 10}


def curve_of(seed, noise, floor, fall, rise):
    draw = numpy.random.default_rng(seed)
    losses = []
    for i in range(STEPS):
        at = i / STEPS
        loss = floor + (2.3 - floor) / (1 + math.exp(40 * (at - fall))) + math.exp(min(60 * (at - rise), 50))
        losses.append(float(loss * (1 + noise * draw.standard_normal())))
    return losses


print(json.dumps([search(f"seed {seed}", curve_of(seed, noise, floor, fall, rise)) for seed, noise, floor, fall, rise in
                  [(1, 0, 0.5, 0.4, 0.7), (2, 0.02, 0.5, 0.5, 0.8), (3, 0.1, 0.2, 0.6, 0.85), (4, 0.3, 1.0, 0.5, 0.9),
                   (5, 0.05, 0.1, 0.3, 0.5), (6, 0.02, 0.4, 0.7, 2.0), (7, 0.2, 0.3, 0.55, 0.75)]]))
