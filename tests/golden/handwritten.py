"""Writes the pictures of recipes/configs/pictures/transfer.yaml.

Run: python3 -m venv V && V/bin/pip install scikit-learn==1.9.1 pillow==13.0.0 && V/bin/python handwritten.py FOLDER

FOLDER gets train/CLASS/NNN.png and valid/CLASS/NNN.png: the handwritten digits of scikit-learn's package (from the
Optical Recognition of Handwritten Digits data set of the UCI), so that nothing is downloaded. A picture is grey and
has 8 x 8 pixels. The training split has the first five pictures of each digit, the validation split all others.
"""
import pathlib
import sys

import numpy as np
from PIL import Image
from sklearn import datasets

TRAIN = 5

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "pictures")
digits = datasets.load_digits()
for label in digits.target_names:
    pictures = digits.images[digits.target == label]
    for i, picture in enumerate(pictures):
        into = folder / ("train" if i < TRAIN else "valid") / str(label)
        into.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.uint8(picture * 255 / 16)).save(into / f"{i:03}.png")
