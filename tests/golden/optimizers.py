"""Writes optimizers.json: the weights after 50 steps of every optimizer, on one thread.

Run: python3 -m venv V && V/bin/pip install torch==2.15.0 numpy && V/bin/python optimizers.py > optimizers.json

A case is an optimizer and what a step does besides: `plain`; `clip`, the joint norm of the gradients is at most 0.1;
`accumulate`, the gradients of a batch are those of four parts; `decay`, a weight decay of 0.1; `ema`, an average of the
weights with a decay of 0.9. All begin with the same weights and see the same batches, which integers give. A case's
value has the bits of the float32 weights as eight hexadecimal digits each, all parameters in their order. torch.optim
has no Lion and no AdamW of 8 bits, so that they are written down below as their papers have them.
"""
import json
import sys

import numpy
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn

STEPS, BATCH, PARTS = 50, 16, 4
FEATURES, HIDDEN, CLASSES = 5, 6, 3


def numbers(count, factor, start):
    """The same float32 numbers in [-1, 1] as the test has."""
    return ((torch.arange(count) * factor + start) % 2001 - 1000).to(torch.float32) / 1000


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(FEATURES, HIDDEN)
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.last = torch.nn.Linear(HIDDEN, CLASSES)
        with torch.no_grad():
            for at, parameter in enumerate(self.parameters()):
                parameter.copy_(numbers(parameter.numel(), 7919, 31 * at).view_as(parameter) / 2)

    def forward(self, x):
        return self.last(self.norm(torch.tanh(self.first(x))))


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, parameters, lr, weight_decay, betas=(0.9, 0.99)):
        super().__init__(parameters, dict(lr=lr, weight_decay=weight_decay, betas=betas))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (now, keep), lr = group["betas"], group["lr"]
            for p in group["params"]:
                mean = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                direction = mean * now + p.grad * (1 - now)
                p.mul_(1 - lr * group["weight_decay"])
                p.sub_(direction.sign() * lr)
                mean.mul_(keep).add_(p.grad * (1 - keep))


def code_book(signed):
    """The numbers of dynamic tree quantization: Dettmers et al. 2022, section 2.2."""
    values = [0.0, 1.0]
    for decade in range(7):
        count = 2 ** (decade if signed else decade + 1)
        for i in range(count):
            value = (0.1 + 0.9 * (i + 0.5) / count) * 10.0 ** (decade - 6)
            values += [value, -value] if signed else [value]
    return numpy.sort(numpy.array(values, numpy.float32))


class AdamW8Bit(torch.optim.Optimizer):
    """AdamW with both moments as codes of 8 bits, in blocks of 256 elements."""

    BLOCK, TINY = 256, numpy.float32(1e-38)
    BOOKS = [code_book(True), code_book(False)]

    def __init__(self, parameters, lr, weight_decay, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(parameters, dict(lr=lr, weight_decay=weight_decay, betas=betas, eps=eps))

    def write(self, which, moment):
        book, scale = self.BOOKS[which], numpy.abs(moment).max()
        middles = (book[:-1] + book[1:]) / numpy.float32(2)
        codes = numpy.searchsorted(middles, moment / max(scale, self.TINY), side="left")
        if which == 1:  # a mean square above 0 never becomes 0
            codes = numpy.maximum(codes, moment > 0)
        return codes.astype(numpy.uint8), scale

    @torch.no_grad()
    def step(self):
        f = numpy.float32
        for group in self.param_groups:
            lr, (b1, b2) = group["lr"], group["betas"]
            for p in group["params"]:
                state, flat, gradients = self.state[p], p.view(-1).numpy(), p.grad.view(-1).numpy()
                state["step"] = state.get("step", 0) + 1
                rate, root = f(lr / (1 - b1 ** state["step"])), f((1 - b2 ** state["step"]) ** 0.5)
                for at in range(0, flat.size, self.BLOCK):
                    x, g = flat[at:at + self.BLOCK], gradients[at:at + self.BLOCK]
                    zero = (numpy.zeros(x.size, numpy.uint8), f(0))
                    read = [book[codes] * scale
                            for book, (codes, scale) in zip(self.BOOKS, state.get(at, (zero, zero)))]
                    mean = read[0] * f(b1) + f(1 - b1) * g
                    square = read[1] * f(b2) + f(1 - b2) * g * g
                    x[:] = x * f(1 - lr * group["weight_decay"]) - rate * (
                        mean / (numpy.sqrt(square) / root + f(group["eps"])))
                    state[at] = (self.write(0, mean), self.write(1, square))


def muon(net, decay):
    """The matrices by Muon, the rest by AdamW with the same rate."""
    matrices = [p for p in net.parameters() if p.ndim == 2]
    others = [p for p in net.parameters() if p.ndim != 2]
    return [torch.optim.Muon(matrices, lr=0.01, weight_decay=decay),
            torch.optim.AdamW(others, lr=0.01, weight_decay=decay, fused=True)]


def one(kind, **options):
    return lambda net, decay: [kind(net.parameters(), weight_decay=decay, **options)]


optim = torch.optim
OPTIMIZERS = {
    "sgd": one(optim.SGD, lr=0.05, fused=True),
    "sgd_momentum": one(optim.SGD, lr=0.05, momentum=0.9, fused=True),
    "sgd_nesterov": one(optim.SGD, lr=0.05, momentum=0.9, nesterov=True, fused=True),
    "adam": one(optim.Adam, lr=0.01, fused=True),
    "adamw": one(optim.AdamW, lr=0.01, fused=True),
    "adamw8bit": one(AdamW8Bit, lr=0.01),
    "nadam": one(optim.NAdam, lr=0.01, foreach=False),
    "rmsprop": one(optim.RMSprop, lr=0.003, foreach=False),
    "rmsprop_momentum": one(optim.RMSprop, lr=0.001, momentum=0.9, foreach=False),
    "adadelta": one(optim.Adadelta, lr=1.0, foreach=False),
    "adagrad": one(optim.Adagrad, lr=0.01, foreach=False),
    "lion": one(Lion, lr=0.003),
    "muon": muon,
}
MODES = ["plain", "clip", "accumulate", "decay", "ema"]


def trained(make, mode):
    net = Net()
    optimizers = make(net, 0.1 if mode == "decay" else 0.0)
    average = AveragedModel(net, avg_fn=get_ema_avg_fn(0.9))
    average.update_parameters(net)  # the first call copies
    inputs = numbers(STEPS * BATCH * FEATURES, 104729, 17).view(-1, FEATURES)
    targets = torch.arange(STEPS * BATCH) * 7 // 3 % CLASSES
    for step in range(STEPS):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        parts = PARTS if mode == "accumulate" else 1
        for x, y in zip(inputs[batch].chunk(parts), targets[batch].chunk(parts)):
            (torch.nn.functional.cross_entropy(net(x), y) / parts).backward()
        if mode == "clip":
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        average.update_parameters(net)
    used = average.module if mode == "ema" else net
    weights = torch.cat([p.detach().flatten() for p in used.parameters()])
    assert weights.isfinite().all()
    return "".join(f"{bits:08x}" for bits in weights.numpy().view(numpy.uint32))


torch.set_num_threads(1)
cases = {f"{name}/{mode}": trained(make, mode) for name, make in OPTIMIZERS.items() for mode in MODES}
json.dump({"torch": torch.__version__.split("+")[0], "weights": cases}, sys.stdout, indent=0)
print()
