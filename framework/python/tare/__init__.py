"""Predictions by the bundles of Tare, in Python.

>>> import tare
>>> model = tare.load("digits.tare")
>>> model(pictures)                 # numpy, torch, memoryview, array.array: anything with DLPack or a buffer
>>> model.classify("seven.png", top=3)
>>> model.predict([{"age": 41, "sex": "f"}])
"""
from ._library import LIBTORCH, Error, InputError, Tensor, load, version

__all__ = ["LIBTORCH", "Error", "InputError", "Tensor", "load", "version"]
