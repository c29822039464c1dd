"""Puts the Learner's steps on a card beside those of Python torch: eager, as a CUDA graph, and by torch.compile.

Run: python tests/bench/bench_card.py build/bin/bench_card [rounds, at least 2 [steps of the GPT]]

Both sides train what bench_card.cpp describes: an MLP 64-128-10 on batches of 32 with SGD, and a GPT of four layers in
bfloat16 with a fused AdamW. Beside Python's CUDA graph the Learner has `graph: true`. The sides alternate; the median of the ratios is printed with its quartiles, below 1 where
the Learner takes less time. Python against itself is the control. A side that this Python cannot do says why.
"""
import statistics
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional

MLP_STEPS, MLP_BATCH = 500, 32
VOCABULARY, CONTEXT, GPT_BATCH, WIDTH, LAYERS, HEADS = 512, 256, 16, 256, 4, 8
CARD = torch.device("cuda:0")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU("tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, width = x.shape
        heads = (part.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
                 for part in self.attention(self.ln_1(x)).split(width, 2))
        y = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Returns scores [batch, length, vocabulary] of tokens [batch, length]; the embedding is the last layer too."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.tokens.weight)


class Mlp:
    """The small MLP and its data, which take mostly the time of launching kernels."""

    name, steps = "mlp", MLP_STEPS

    def __init__(self):
        self.inputs = torch.rand(MLP_STEPS, MLP_BATCH, 64).pin_memory()
        self.targets = torch.randint(10, (MLP_STEPS, MLP_BATCH)).pin_memory()

    def model(self):
        return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(CARD)

    def optimizer(self, model, capturable):
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)

    def loss(self, model, inputs, targets):
        return functional.cross_entropy(model(inputs), targets)


class Language:
    """The GPT and its data, which take mostly the time of kernels."""

    name = "gpt"

    def __init__(self, steps):
        self.steps = steps
        self.inputs = torch.randint(VOCABULARY, (steps, GPT_BATCH, CONTEXT)).pin_memory()
        self.targets = self.inputs.roll(-1, 2).pin_memory()

    def model(self):
        return Gpt().to(CARD)

    def optimizer(self, model, capturable):
        return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True, capturable=capturable)

    def loss(self, model, inputs, targets):
        with torch.autocast("cuda", torch.bfloat16):
            scores = model(inputs)
        return functional.cross_entropy(scores.float().flatten(0, 1), targets.flatten())


def epoch(subject, step):
    """Returns the milliseconds of an epoch; `step` returns the loss on the card, which is read once at the end."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    total = torch.zeros((), device=CARD)
    for inputs, targets in zip(subject.inputs, subject.targets):
        total += step(inputs, targets)
    total.item()
    return 1e3 * (time.perf_counter() - start)


def eager(subject, compiled=False):
    model = subject.model()
    forward = torch.compile(model) if compiled else model
    optimizer = subject.optimizer(model, capturable=False)

    def step(inputs, targets):
        loss = subject.loss(forward, inputs.to(CARD, non_blocking=True), targets.to(CARD, non_blocking=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return lambda: epoch(subject, step)


def graphed(subject):
    model = subject.model()
    optimizer = subject.optimizer(model, capturable=True)
    inputs, targets = subject.inputs[0].to(CARD), subject.targets[0].to(CARD)

    def once():
        optimizer.zero_grad(set_to_none=False)
        loss = subject.loss(model, inputs, targets)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = once()

    def step(next_inputs, next_targets):
        inputs.copy_(next_inputs, non_blocking=True)
        targets.copy_(next_targets, non_blocking=True)
        graph.replay()
        return loss

    return lambda: epoch(subject, step)


def learner(program, subject, steps, graph=False):
    """Returns the milliseconds of an epoch of the Learner, in a process of its own. graph: with graph: true."""
    name = subject.name + ("_graph" if graph else "")
    lines = subprocess.run([program, "--learner", str(steps)], check=True, capture_output=True, text=True).stdout
    return next(float(line.split()[1]) for line in lines.splitlines() if line.startswith(name + " "))


def compare(what, rounds, python, other):
    """Prints other / python over pairs, in which each side is the first in turn."""
    pairs = []
    for i in range(rounds):
        first, second = (python, other) if i % 2 == 0 else (other, python)
        a, b = first(), second()
        pairs.append((a, b) if i % 2 == 0 else (b, a))
    low, middle, high = statistics.quantiles((b / a for a, b in pairs), n=4, method="inclusive")
    ms = [statistics.median(side) for side in zip(*pairs)]
    print(f"{what:<52} {middle:.3f} [{low:.3f}, {high:.3f}]   {ms[1]:.3g} ms against {ms[0]:.3g} ms", flush=True)


def main():
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    print(f"Python torch {torch.__version__}, {torch.cuda.get_device_name(CARD)}; median of ratios, [quartiles]")
    for subject in (Mlp(), Language(steps)):
        what = f"{subject.steps} steps of the {subject.name}"
        for side, make in (("eager", lambda: eager(subject)), ("a CUDA graph", lambda: graphed(subject)),
                           ("torch.compile", lambda: eager(subject, compiled=True))):
            try:
                python = make()
                python()  # compiles, and fills the caches
                if side == "eager":
                    compare(f"{what}, {side} against itself (control)", rounds, python, python)
            except Exception as error:  # what this Python, driver or card lacks
                reason = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
                print(f"{what}, {side}: not timed: {reason}", flush=True)
                continue
            graph = side == "a CUDA graph"
            compare(f"{what}, Learner against {side}", rounds, python,
                    lambda: learner(program, subject, steps, graph))


main()
