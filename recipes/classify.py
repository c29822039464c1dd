"""Classifies pictures in Python: python classify.py digits.tare seven.png ..."""
import sys

import tare


def main():
    model = tare.load(sys.argv[1], threads=2)
    for path in sys.argv[2:]:
        best = model.classify(path)[0]
        print(f"{path}: {best['label']} {best['probability']:.4f}")


if __name__ == "__main__":
    main()
