"""Writes ddp.json: losses and weights of trainings by PyTorch's DistributedDataParallel over Gloo, for ddp_test.

Usage: python ddp.py, with torch 2.15. Numbers follow from integers alone, so that the test makes equal ones.
"""
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, EPOCH = 100, 24, 10


def numbers(count, step, modulus, divisor):
    index = torch.arange(count, dtype=torch.int64)
    return ((index * step) % modulus - modulus // 2).to(torch.float64).div(divisor).to(torch.float32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 6, 3, stride=2)
        self.fc = nn.Linear(6 * 3 * 3, 5)

    def forward(self, x):
        return self.fc(torch.relu(self.conv2(torch.relu(self.bn(self.conv1(x))))).flatten(1))


def train(rank, world, name, frozen, parts, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["DDP_PORT"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    net = Net()
    with torch.no_grad():
        for place, one in enumerate(net.parameters()):
            if one.dim() > 1:
                one.copy_(numbers(one.numel(), 37 + place, 199, 600).view_as(one))
            elif one is not net.bn.weight:
                one.copy_(numbers(one.numel(), 11 + place, 23, 100).view_as(one))
    if frozen:
        net.conv1.requires_grad_(False)
    ddp = DistributedDataParallel(net)
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
    inputs = numbers(EPOCH * BATCH * 64, 7919, 1009, 300).view(-1, 1, 8, 8)
    labels = (torch.arange(EPOCH * BATCH) * 13 % 29) % 5
    own = BATCH // world
    losses = []
    for step in range(STEPS):
        begin = step % EPOCH * BATCH + rank * own
        x, y = inputs[begin:begin + own].chunk(parts), labels[begin:begin + own].chunk(parts)
        optimizer.zero_grad()
        whole = 0.0
        for part in range(parts):
            loss_of = lambda: nn.functional.cross_entropy(ddp(x[part]), y[part]) / parts
            if part + 1 < parts:
                with ddp.no_sync():
                    loss = loss_of()
                    loss.backward()
            else:
                loss = loss_of()
                loss.backward()
            whole += loss.item()
        optimizer.step()
        losses.append(whole)
    all_losses = [None] * world
    dist.all_gather_object(all_losses, losses)
    if rank == 0:
        norms = [one.detach().double().square().sum().item() for one in net.state_dict().values()
                 if one.is_floating_point()]
        results[name] = {"world": world, "frozen": frozen, "parts": parts, "losses": all_losses, "norms": norms}
    dist.destroy_process_group()


def main():
    results = mp.Manager().dict()
    for port, (world, frozen, parts) in enumerate([(2, False, 1), (2, True, 2), (3, False, 2), (4, True, 1)]):
        os.environ["DDP_PORT"] = str(29610 + port)
        name = f"{world} ranks, {parts} parts" + (", frozen" if frozen else "")
        mp.spawn(train, args=(world, name, frozen, parts, results), nprocs=world)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ddp.json"), "w") as file:
        json.dump({"torch": torch.__version__, "runs": dict(results)}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
