"""Writes augmentations.json: torchvision's results for small pictures and fixed parameters.

Run: python3 -m venv V && V/bin/pip install torch==2.15.0 torchvision==0.29.2 && V/bin/python augmentations.py \
     > augmentations.json

"colours" are of float pictures in [0, 1], given and compared in units of 1/255; "operations" are those of RandAugment on
uint8 pictures with the magnitude 17 of 31; "crops" are resized parts, and the pictures of an evaluation.
"""
import json

import torch
import torchvision
from torchvision.transforms import v2
from torchvision.transforms import functional as f
from torchvision.transforms.autoaugment import RandAugment, _apply_op

torch.manual_seed(11)
HEIGHT, WIDTH = 10, 13
MAGNITUDE = 17  # with which no shear takes a point in the middle between two pixels


def picture(channels):
    """Returns a smooth picture with some noise, uint8."""
    y = torch.linspace(0, 3, HEIGHT).view(1, -1, 1)
    x = torch.linspace(0, 2, WIDTH).view(1, 1, -1)
    phase = torch.arange(channels).view(-1, 1, 1)
    smooth = 128 + 90 * torch.sin(y + phase) * torch.cos(x - phase)
    return (smooth + torch.randint(-25, 26, (channels, HEIGHT, WIDTH))).clamp(20, 235).to(torch.uint8)


def flat(tensor, decimals=4):
    return [round(v, decimals) if isinstance(v, float) else v for v in tensor.flatten().tolist()]


pictures = {"grey": picture(1), "colour": picture(3)}
colours, operations, crops = [], [], []
for name, image in pictures.items():
    values = image.to(torch.float32) / 255
    for operation, function, factors in [
        ("brightness", f.adjust_brightness, [0.4, 1.7]),
        ("contrast", f.adjust_contrast, [0.3, 1.6]),
        ("saturation", f.adjust_saturation, [0.0, 0.5, 2.0]),
        ("hue", f.adjust_hue, [-0.4, -0.1, 0.3]),
    ]:
        for factor in factors:
            colours.append({"picture": name, "operation": operation, "factor": factor,
                            "values": flat(function(values, factor) * 255)})
    if name == "colour":
        colours.append({"picture": name, "operation": "grey", "factor": 0,
                        "values": flat(f.rgb_to_grayscale(values, 3) * 255)})
    space = RandAugment()._augmentation_space(31, (HEIGHT, WIDTH))
    for operation, (magnitudes, signed) in space.items():
        for sign in [1, -1] if signed else [1]:
            magnitude = float(magnitudes[MAGNITUDE]) if magnitudes.ndim > 0 else 0.0
            out = _apply_op(image, operation, sign * magnitude, f.InterpolationMode.NEAREST, None)
            operations.append({"picture": name, "operation": operation, "sign": sign, "magnitude": magnitude,
                               "values": flat(out)})
    for top, left, height, width, to in [(1, 2, 7, 9, (4, 6)), (0, 0, 10, 13, (5, 5)), (3, 4, 4, 5, (8, 8))]:
        out = f.resized_crop(values, top, left, height, width, list(to), antialias=True)
        crops.append({"picture": name, "box": [top, left, height, width], "to": to, "values": flat(out * 255)})
    for side, to in [(0, (7, 6)), (8, (7, 7)), (15, (12, 10))]:
        out = f.center_crop(f.resize(values, side, antialias=True) if side else values, list(to))
        crops.append({"picture": name, "short_side": side, "to": to, "values": flat(out * 255)})

mixes = []
batch = torch.randint(0, 64, (4, 3, 6, 8)).to(torch.float32) / 64
labels = torch.tensor([2, 0, 0, 1])
mix = v2.MixUp(num_classes=3)
params = {"lam": 0.75, "batch_size": 4, "labels": labels}
mixes.append({"kind": "mixup", "share": 0.75, "values": flat(mix.transform(batch, params), 8),
              "target": flat(mix._mixup_label(labels, lam=0.75))})
cut = v2.CutMix(num_classes=3)
box = (1, 2, 5, 6)  # x1, y1, x2, y2
share = 1 - (box[2] - box[0]) * (box[3] - box[1]) / (6 * 8)
params = {"box": box, "lam_adjusted": share, "batch_size": 4, "labels": labels}
mixes.append({"kind": "cutmix", "share": share, "box": box, "values": flat(cut.transform(batch, params), 8),
              "target": flat(cut._mixup_label(labels, lam=share))})
print(json.dumps({"torchvision": torchvision.__version__, "height": HEIGHT, "width": WIDTH,
                  "pictures": {name: flat(image) for name, image in pictures.items()},
                  "colours": colours, "operations": operations, "crops": crops,
                  "batch": flat(batch, 8), "labels": labels.tolist(), "mixes": mixes}))
