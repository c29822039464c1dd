"""Tests of the Python module without LibTorch, in an environment that has its wheel, beside the bundles of wheel_test.py."""
import array
import glob
import json
import os
import subprocess
import unittest

import tare


class LiteWheel(unittest.TestCase):
    def setUp(self):
        self.pictures = sorted(glob.glob("pictures/**/*.png", recursive=True))
        self.model = tare.load("small/small.tare", threads=2)

    def test_it_has_no_libtorch(self):
        self.assertEqual(tare.ENGINE, "lite")
        self.assertIn("without LibTorch", tare.version())
        with open("/proc/self/maps", encoding="utf-8") as maps:
            self.assertNotIn("libtorch", maps.read())

    def test_pictures_are_classified_as_libtorch_does(self):
        program = os.path.join(os.environ["TARE_PROGRAMS"], "tare-predict")
        done = subprocess.run([program, "small/small.tare", *self.pictures[:3], "--top", "3", "--json"], check=True,
                              capture_output=True, text=True)
        for path, expected in zip(self.pictures, json.loads(done.stdout)):
            got = self.model.classify(path, top=3)
            self.assertEqual([one["label"] for one in got], [one["label"] for one in expected["predictions"]])
            for one, other in zip(got, expected["predictions"]):
                self.assertAlmostEqual(one["probability"], other["probability"], places=5)

    def test_arrays_are_predicted(self):
        pixels = array.array("B", range(256))
        output = self.model(memoryview(pixels).cast("B", (1, 1, 16, 16))).tolist()
        self.assertAlmostEqual(sum(output[0]), 1, places=5)
        self.assertEqual(len(self.model.info["labels"]), 10)

    def test_others_need_libtorch(self):
        for bundle in ("houses/houses.tare", "digits/digits.tare"):
            with self.assertRaisesRegex(tare.InputError, "with the package torch"):
                tare.load(bundle)
        with self.assertRaisesRegex(tare.Error, "need LibTorch"):
            self.model.predict([{"a": 1}])
        with self.assertRaisesRegex(tare.InputError, "none.tare"):
            tare.load("none.tare")


if __name__ == "__main__":
    unittest.main()
