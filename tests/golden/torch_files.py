#!/usr/bin/env python3
"""Writes the files of torch.save that tests/checkpoint/torch_file_test.cpp and tests/fuzz read.

    pip install torch==2.15.0 torchvision==0.29.2
    python3 torch_files.py .         # torch_state.pt, torch_nested.pt, torch_old.pt, torch_call.pt, torch_vit*.pt

torch_state.pt has each dtype of safetensors, views that share a storage, strides, a parameter and an empty tensor.
torch_nested.pt has a state dict beside other things of a training. torch_old.pt is of the format before PyTorch 1.6,
and torch_call.pt calls a function when Python loads it. torch_vit.pt has a small VisionTransformer of torchvision in a
DataParallel, and torch_vit_output.pt what it computes, for tests/models/weights_test.cpp.
"""
import collections
import os
import sys

import torch
import torchvision

DTYPES = ["int64", "float64", "float32", "int32", "bfloat16", "float16", "int16", "float8_e4m3fn", "float8_e5m2",
          "int8", "uint8", "bool"]


class Call:
    def __reduce__(self):
        return os.system, ("true",)


def state():
    tensors = collections.OrderedDict()
    for name in DTYPES:
        tensors["dtype." + name] = torch.tensor([0, 1, 1, 0, 1, 0]).reshape(2, 3).to(getattr(torch, name))
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    tensors["whole"] = base
    tensors["transposed"] = base.t()
    tensors["column"] = base[:, 1]
    tensors["expanded"] = base[2, 3].expand(2, 2)
    tensors["parameter"] = torch.nn.Parameter(torch.tensor([1.5, -2.5]))
    tensors["empty"] = torch.zeros(0, 3)
    tensors["scalar"] = torch.tensor(7)
    tensors._metadata = {"": {"version": 1}}
    return tensors


def nested():
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(6.0).reshape(2, 3))
        layer.bias.copy_(torch.tensor([0.5, -0.5]))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    return {"epoch": 3, "arch": "linear", "best": torch.tensor(0.5), "shape": torch.Size([2, 3]),
            "big": 1 << 40, "none": None, "list": [1.5, True, -3, (1, 2)],
            "state_dict": torch.nn.DataParallel(layer).state_dict(), "optimizer": optimizer.state_dict()}


def vit(folder):
    torch.manual_seed(0)
    model = torchvision.models.VisionTransformer(image_size=16, patch_size=8, num_layers=1, num_heads=2, hidden_dim=16,
                                                 mlp_dim=32, num_classes=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    images = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        output = model.eval()(images)
    torch.save({"epoch": 1, "state_dict": torch.nn.DataParallel(model).state_dict()},
               os.path.join(folder, "torch_vit.pt"))
    torch.save({"input": images, "output": output}, os.path.join(folder, "torch_vit_output.pt"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    torch.save(state(), os.path.join(folder, "torch_state.pt"))
    torch.save(nested(), os.path.join(folder, "torch_nested.pt"))
    torch.save(torch.nn.Linear(1, 1).state_dict(), os.path.join(folder, "torch_old.pt"),
               _use_new_zipfile_serialization=False)
    torch.save({"weight": Call()}, os.path.join(folder, "torch_call.pt"))
    vit(folder)
