#!/usr/bin/env python3
"""Compares a training step of Tare with that of Python's frameworks, in one run; prints a table for docs/performance.md.

Run: python3 -m venv V && V/bin/pip install torch==2.15.0 torchvision==0.29.2 numpy==2.4.6 lightning==2.6.6 \
         accelerate==1.15.0 fastai==2.8.12
     V/bin/python tests/golden/performance.py --tare build/bin/tare --threads 1 [--rounds 5] [--only gpt]

Both sides train the same layers on the same sizes with AdamW. Python's batches are in memory and on the device already, and
nothing but the step is done: no bars, logs or checkpoints. Tare's step contains its loader. A round runs each side once, in
a process of its own, in turn; a ratio is taken within a round, and the table has the median and the range over the rounds.
The row "again" is Python eager against itself: within its range there is no difference.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.pop(0)  # this folder, in which libraries would find tables.py as a module of theirs

SUBJECTS = {
    "mlp": ("mlp 784-128-10, batch 32", "mlp", ["batch=32"]),
    "wide": ("mlp 784-512-512-10, batch 128", "mlp", ["batch=128", "model.hidden=[512, 512]"]),
    "resnet18": ("resnet18, 3 x 32 x 32, batch 32", "resnet18", ["batch=32", "model.sample_shape=[3, 32, 32]"]),
    "gpt": ("gpt, 4 blocks of 192, context 128, batch 8", "gpt",
            ["batch=8", "model.layers=4", "model.width=192", "model.heads=6", "model.sample_shape=[128]",
             "model.classes=65"]),
}
ENGINES = ["eager", "again", "compile", "lightning", "accelerate", "fastai"]
STEPS = {"mlp": 400, "wide": 60, "resnet18": 8, "gpt": 12}


def model_and_batch(subject):
    import torch
    from torch import nn
    torch.manual_seed(0)
    if subject in ("mlp", "wide"):
        sizes = [784, 128, 10] if subject == "mlp" else [784, 512, 512, 10]
        layers = []
        for i, o in zip(sizes, sizes[1:]):
            layers += [nn.Linear(i, o), nn.ReLU()]
        batch = 32 if subject == "mlp" else 128
        return nn.Sequential(*layers[:-1]), torch.rand(batch, 784), torch.randint(10, (batch,))
    if subject == "resnet18":
        import torchvision
        net = torchvision.models.resnet18(num_classes=10)
        return net, torch.rand(32, 3, 32, 32), torch.randint(10, (32,))

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.ln_1(x)).split(c, 2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.out(nn.functional.gelu(self.fc(self.ln_2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self, vocabulary=65, width=192, layers=4, heads=6, context=128):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, x):
            x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(x))).transpose(1, 2)

    return Gpt(), torch.randint(65, (8, 128)), torch.randint(65, (8, 128))


def python_step(engine, subject, threads):
    """Returns the median seconds of a step."""
    import torch
    torch.set_num_threads(threads)
    net, inputs, targets = model_and_batch(subject)
    loss_of = torch.nn.functional.cross_entropy
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    steps, times = STEPS[subject], []
    first = max(3, steps // 5)
    if engine in ("eager", "again", "compile", "accelerate"):
        step_net = torch.compile(net) if engine == "compile" else net
        backward = lambda loss: loss.backward()
        if engine == "accelerate":
            from accelerate import Accelerator
            accelerator = Accelerator(cpu=True)
            step_net, optimizer = accelerator.prepare(net, optimizer)
            backward = accelerator.backward
        for i in range(first + steps):
            start = time.perf_counter()
            loss = loss_of(step_net(inputs), targets)
            backward(loss)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if i >= first:
                times.append(time.perf_counter() - start)
        return statistics.median(times)
    stamps = []

    class Batches:  # a list would be one of loaders
        def __len__(self):
            return first + steps

        def __iter__(self):
            return iter([(inputs, targets)] * (first + steps))

    if engine == "lightning":
        import logging
        import warnings
        import lightning
        warnings.filterwarnings("ignore")
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = net

            def training_step(self, batch, _):
                stamps.append(time.perf_counter())
                return loss_of(self.net(batch[0]), batch[1])

            def configure_optimizers(self):
                return optimizer

        lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                          enable_progress_bar=False, enable_model_summary=False).fit(Module(), Batches())
    else:
        import fastai.callback.progress  # adds no_bar()
        from fastai.callback.core import Callback
        from fastai.data.core import DataLoaders
        from fastai.learner import Learner

        class Loader(Batches):
            device = torch.device("cpu")

            def to(self, device):
                return self

        class Stamp(Callback):
            def before_batch(self):
                stamps.append(time.perf_counter())

        learner = Learner(DataLoaders(Loader(), Loader()), net, loss_func=loss_of,
                          opt_func=lambda groups, lr: __import__("fastai.optimizer").optimizer.OptimWrapper(
                              groups, torch.optim.AdamW, lr=lr), cbs=[Stamp()])
        learner.recorder.train_metrics = False
        with learner.no_bar(), learner.no_logging():
            learner.fit(1, lr=1e-4)
    stamps = stamps[first:first + steps]
    return statistics.median(b - a for a, b in zip(stamps, stamps[1:]))


def tare_step(tare, subject, threads):
    _, model, overrides = SUBJECTS[subject]
    answer = subprocess.run([tare, "bench", model, *overrides, "device=cpu", "--steps", str(STEPS[subject]), "--json"],
                            env={**os.environ, "OMP_NUM_THREADS": str(threads)}, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tare")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(SUBJECTS))
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--measure", nargs=2, metavar=("ENGINE", "SUBJECT"))  # in a process of its own
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(python_step(*args.measure, args.threads)))
        return
    engines = [e for e in ENGINES if e in args.engines.split(",")]
    print(f"| step, {args.threads} thread{'s' if args.threads > 1 else ''} | Tare | of the limit | "
          + " | ".join("eager again" if e == "again" else e for e in engines) + " |")
    print("|---" * (3 + len(engines)) + "|")
    for subject in args.only.split(","):
        ours, shares, ratios = [], [], {e: [] for e in engines}
        for _ in range(args.rounds):
            result = tare_step(args.tare, subject, args.threads)
            step = result["step"]
            ours.append(step["seconds"])
            shares.append(step["limit_s"] / step["seconds"])
            eager = None
            for engine in engines:
                answer = subprocess.run([sys.executable, __file__, "--measure", engine, subject, "--threads",
                                         str(args.threads)], capture_output=True, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
                if answer.returncode:
                    print(f"{engine} {subject}: {answer.stderr[-300:]}", file=sys.stderr)
                    continue
                seconds = json.loads(answer.stdout.strip().splitlines()[-1])
                eager = seconds if engine == "eager" else eager
                ratios[engine].append(seconds / eager if engine == "again" else step["seconds"] / seconds)
        cells = []
        for engine in engines:
            found = ratios[engine]
            cells.append(f"{statistics.median(found):.3f} ({min(found):.3f} to {max(found):.3f})" if found else "-")
        print(f"| {SUBJECTS[subject][0]} | {1e3 * statistics.median(ours):.3g} ms | {100 * statistics.median(shares):.0f} % | "
              + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
