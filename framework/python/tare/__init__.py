"""Predictions by the bundles of Tare, in Python.

>>> import tare
>>> model = tare.load("digits.tare")
>>> model(pictures)                 # numpy, torch, memoryview, array.array: anything with DLPack or a buffer
>>> model.classify("seven.png", top=3)
>>> model.predict([{"age": 41, "sex": "f"}])

Without LibTorch (the package torch) a smaller engine predicts, for bundles of a few families; ENGINE names the one that
was chosen, and the variable TARE_ENGINE in the environment chooses it: auto, lite or libtorch.
"""
from ._library import ENGINE, LIBTORCH, Error, InputError, Tensor, load, version

__all__ = ["ENGINE", "LIBTORCH", "Error", "InputError", "Tensor", "load", "version"]
