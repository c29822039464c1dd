#!/usr/bin/env python3
"""Writes tests/golden/python.safetensors with Python's safetensors, and checks a file that Tare wrote.

    pip install numpy==2.4.6 safetensors==0.8.0
    python3 safetensors_golden.py write python.safetensors
    python3 safetensors_golden.py check FILE     # FILE holds the same tensors; exit status 0 if all are equal

tests/checkpoint/safetensors_test.cpp holds that Tare's writer gives the same bytes as this script.
"""
import sys

import numpy as np
from safetensors.numpy import load_file, save_file
from safetensors import safe_open

TENSORS = {
    "layer.weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
    "layer.bias": np.array([-1.5, 0.0, 2.25], dtype=np.float32),
    "step": np.array(7, dtype=np.int64),
    "half": np.array([[0.5], [-0.25]], dtype=np.float16),
    "double": np.array([1 / 3, -1e300]),
    "mask": np.array([True, False, True]),
    "bytes": np.arange(5, dtype=np.uint8),
    "int8": np.array([-128, 127], dtype=np.int8),
    "int16": np.array([-32768, 32767], dtype=np.int16),
    "int32": np.array([-(2**31), 2**31 - 1], dtype=np.int32),
    "empty": np.zeros((0, 4), dtype=np.float32),
    "größe \"q\" \\": np.array([1.0], dtype=np.float32),
}


def check(path):
    loaded = load_file(path)
    assert loaded.keys() == TENSORS.keys(), loaded.keys() ^ TENSORS.keys()
    for name, expected in TENSORS.items():
        got = loaded[name]
        assert got.dtype == expected.dtype and got.shape == expected.shape, name
        assert got.tobytes() == expected.tobytes(), name
    with safe_open(path, "np") as file:
        assert file.metadata() == {"made": "by hand"}, file.metadata()


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    if sys.argv[1] == "write":
        save_file(TENSORS, sys.argv[2], {"made": "by hand"})
    check(sys.argv[2])
