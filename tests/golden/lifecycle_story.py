"""The fastai memory story in Python torch: fit the head, purge, unfreeze, fit all, purge, export, destroy.

Prints resident memory of the process per phase: peak above the phase's start, what came back at its end, what stayed.
Python's way of purging is `del`, gc.collect() and empty_cache(); malloc_trim is called too, so that both sides give
pages back. The C++ side is tests/bench/lifecycle_story.cpp: the same network, batches and optimizer.

Made with Python 3.11, torch 2.11.0 on the CPU, OMP_NUM_THREADS=1:  python tests/golden/lifecycle_story.py
"""
import ctypes
import gc
import os
import sys

import torch
from torch import nn

WIDTH, BATCH, STEPS = 1024, 256, 20
libc = ctypes.CDLL("libc.so.6")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def reset_peak():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def reclaim():
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    libc.malloc_trim(0)


def make_model():
    return nn.Sequential(nn.Linear(784, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
                         nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10))


def fit(model):
    """Returns what a purge must find: the optimizer with its state, and the data."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, fused=True)
    x = torch.rand(BATCH * STEPS, 784)
    y = torch.randint(10, (BATCH * STEPS,))
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return optimizer, x, y


def phase(name, work):
    start = resident()
    reset_peak()
    held = work()
    consumed, highest = resident() - start, peak() - start
    del held
    for p in (model.parameters() if model is not None else ()):
        p.grad = None
    reclaim()
    end = resident() - start
    print(f"{name:8} peak {highest / 2**20:8.1f} MiB  reclaimed {(consumed - end) / 2**20:8.1f} MiB  "
          f"residual {end / 2**20:8.1f} MiB")


def train_head():
    for p in list(model.parameters())[:-2]:
        p.requires_grad_(False)
    return fit(model)


def train_all():
    for p in model.parameters():
        p.requires_grad_(True)
    return fit(model)


def export():
    torch.save(model.state_dict(), "/tmp/lifecycle_story.pt")
    os.remove("/tmp/lifecycle_story.pt")


def destroy():
    global model
    model = None


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("Python", sys.version.split()[0], "torch", torch.__version__)
    model = nn.Sequential(nn.Linear(784, 10))
    fit(model)  # loads kernels and thread pools, which no phase should pay for
    model = None
    reclaim()
    begin = resident()
    model = make_model()
    phase("head", train_head)
    phase("all", train_all)
    phase("export", export)
    phase("destroy", destroy)
    print(f"residual after destroy {(resident() - begin) / 2**20:.1f} MiB")
