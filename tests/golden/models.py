#!/usr/bin/env python3
"""Writes tests/golden/models.json: what the Python originals of Tare's models compute.

    pip install torch==2.15.0 torchvision==0.29.2
    python3 models.py models.json

Every tensor is filled by a formula of its place among the sorted names, see fill(), which
tests/models/originals_test.cpp has too. So the file holds names, shapes and outputs, and no weights. The originals of
vit and mobilenet_v3 are torchvision's, and lstm is made of PyTorch's layers. The three others are written here after their authors' code: unet after
https://github.com/milesial/Pytorch-UNet, tabular after fastai 2.8 (fastai/tabular/model.py, fastai/layers.py), and
siamese after https://github.com/pytorch/examples (siamese_network), without its sigmoid at the end.
"""
import json
import math
import sys

import torch
import torchvision
from torch import nn
from torch.nn import functional


def conv_pair(inputs, outputs, middle=None):
    middle = middle or outputs
    return nn.Sequential(nn.Conv2d(inputs, middle, 3, padding=1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(),
                         nn.Conv2d(middle, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Named(nn.Module):
    """A module of one child, under the name that the original gives it."""

    def __init__(self, name, child):
        super().__init__()
        self.add_module(name, child)
        self.child = name

    def forward(self, x):
        return getattr(self, self.child)(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        else:
            self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, stride=2)
        self.conv = Named("double_conv", conv_pair(inputs, outputs, inputs // 2 if bilinear else None))

    def forward(self, below, skip):
        x = self.up(below)
        rows, columns = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        x = functional.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return self.conv(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    def __init__(self, channels, classes, width, bilinear):
        super().__init__()
        factor = 2 if bilinear else 1
        widths = [width, 2 * width, 4 * width, 8 * width, 16 * width // factor]
        self.inc = Named("double_conv", conv_pair(channels, width))
        for i in range(4):
            pair = Named("double_conv", conv_pair(widths[i], widths[i + 1]))
            self.add_module(f"down{i + 1}", Named("maxpool_conv", nn.Sequential(nn.MaxPool2d(2), pair)))
        for i in range(4):
            outputs = width if i == 3 else (8 * width >> i) // factor
            self.add_module(f"up{i + 1}", Up(16 * width >> i, outputs, bilinear))
        self.outc = Named("conv", nn.Conv2d(width, classes, 1))

    def forward(self, x):
        skips = [self.inc(x)]
        for i in range(4):
            skips.append(getattr(self, f"down{i + 1}")(skips[-1]))
        y = skips[4]
        for i in range(4):
            y = getattr(self, f"up{i + 1}")(y, skips[3 - i])
        return self.outc(y)


class Tabular(nn.Module):
    def __init__(self, categories, numbers, outputs, hidden):
        super().__init__()
        widths = [min(600, round(1.6 * n**0.56)) for n in categories]
        self.embeds = nn.ModuleList([nn.Embedding(n, width) for n, width in zip(categories, widths)])
        self.bn_cont = nn.BatchNorm1d(numbers)
        sizes = [sum(widths) + numbers] + hidden
        layers = [nn.Sequential(nn.Linear(a, b, bias=False), nn.ReLU(), nn.BatchNorm1d(b))
                  for a, b in zip(sizes, sizes[1:])]
        self.layers = nn.Sequential(*layers, nn.Sequential(nn.Linear(sizes[-1], outputs)))

    def forward(self, rows):
        count = len(self.embeds)
        parts = [embed(rows[:, i].long()) for i, embed in enumerate(self.embeds)]
        return self.layers(torch.cat(parts + [self.bn_cont(rows[:, count:])], 1))


class Siamese(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        trunk = torchvision.models.resnet18(weights=None)
        trunk.conv1 = nn.Conv2d(1, 64, 7, 2, 3, bias=False)
        self.resnet = nn.Sequential(*list(trunk.children())[:-1])
        self.fc = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, outputs))

    def forward(self, left, right):
        return self.fc(torch.cat([self.resnet(left).flatten(1), self.resnet(right).flatten(1)], 1))


class Lstm(nn.Module):
    """A sentence classifier as PyTorch's users write it: the state at the last token of each sequence."""

    def __init__(self, width, layers, classes):
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.layers = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True,
                                                   enforce_sorted=False)
        return self.head(self.layers(packed)[1][0][-1])


def mixed(shape, start):
    """Values from -1 to below 1 without a pattern: squares modulo a prime."""
    i = torch.arange(math.prod(shape), dtype=torch.int64)
    return (((i * i + 31 * i + 77 * start) % 10007).double() / 5003.5 - 1).reshape(shape)


def fill(model):
    """Fills tensor t of the sorted names by mixed(shape, t), scaled by what it is for."""
    for t, (name, tensor) in enumerate(sorted(model.state_dict().items())):
        if not tensor.is_floating_point():
            continue
        values = mixed(tensor.shape, t)
        if tensor.dim() > 1:
            values = values * math.sqrt(6 / (tensor.numel() / tensor.shape[0]))
        elif name.endswith(("running_var", "weight")):
            values = 1 + 0.3 * values
        else:
            values = 0.1 * values
        tensor.copy_(values)


def image(shape, start=1000):
    return mixed(shape, start).float()


def rows(count, categories, numbers):
    codes = [torch.arange(count) % n for n in categories]
    return torch.cat([torch.stack(codes, 1).float(), image([count, numbers])], 1)


def case(name, options, model, inputs):
    """Evaluates the model, its gradient, and the statistics of its first batch norm after a training step."""
    with torch.no_grad():
        fill(model)
    model.eval()
    output = model(*inputs)
    (output * mixed(output.shape, 3000)).sum().backward()
    gradient = math.sqrt(sum(p.grad.double().square().sum().item() for p in model.parameters()))
    result = {"model": name, "options": options, "inputs": [list(x.shape) for x in inputs],
              "tensors": [[key, list(tensor.shape)] for key, tensor in model.state_dict().items()],
              "shape": list(output.shape), "output": [float(f"{v:.8g}") for v in output.flatten()[:200].tolist()],
              "gradient": gradient}
    norms = [key for key in model.state_dict() if key.endswith("running_mean")]
    if norms:
        model.train()
        model(*inputs)
        result["statistics"] = {norms[0]: [float(f"{v:.8g}") for v in model.state_dict()[norms[0]].tolist()]}
    return result


def shapes(name, options, model):
    tensors = [[key, list(tensor.shape)] for key, tensor in model.state_dict().items()]
    return {"model": name, "options": options, "tensors": tensors}


def cases():
    vision = torchvision.models
    yield case("vit", "{classes: 5, sample_shape: [3, 32, 32], width: 32, layers: 2, heads: 4, "
               "options: {patch: 8, mlp: 48}}",
               vision.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32,
                                        mlp_dim=48, num_classes=5), [image([3, 3, 32, 32])])
    yield shapes("vit", "{classes: 1000}", vision.vit_b_16())
    for bilinear in (False, True):
        options = f"{{classes: 3, sample_shape: [2, 64, 64], width: 4, options: {{bilinear: {str(bilinear).lower()}}}}}"
        yield case("unet", options, UNet(2, 3, 4, bilinear), [image([2, 2, 37, 44])])
    for size, make in (("large", vision.mobilenet_v3_large), ("small", vision.mobilenet_v3_small)):
        yield case(f"mobilenet_v3_{size}", "{classes: 1000}", make(), [image([2, 3, 64, 64])])
        yield case(f"mobilenet_v3_{size}", "{classes: 7, width: 8}", make(width_mult=0.5, num_classes=7),
                   [image([2, 3, 64, 64])])
    yield case("tabular", "{classes: 3, sample_shape: [5], hidden: [12, 8], options: {categories: [4, 30]}}",
               Tabular([4, 30], 3, 3, [12, 8]), [rows(6, [4, 30], 3)])
    tokens = (37 * torch.arange(4 * 9) % 256).reshape(4, 9)
    yield case("lstm", "{classes: 3, sample_shape: [9], width: 6, layers: 2}", Lstm(6, 2, 3),
               [tokens, torch.tensor([9, 3, 1, 7])])
    yield case("siamese", "{classes: 2}", Siamese(2), [image([3, 1, 28, 28]), image([3, 1, 28, 28], 2000)])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with open(sys.argv[1], "w") as file:
        lines = [json.dumps(each, separators=(",", ":")) for each in cases()]
        file.write("[\n" + ",\n".join(lines) + "\n]\n")
