"""Tests of the Python module, in an environment that has its wheel, beside the bundles of wheel_test.py."""
import array
import glob
import json
import os
import subprocess
import threading
import unittest

import tare

try:
    import numpy
except ImportError:
    numpy = None


def as_lists(output):
    return output.tolist()


def by_the_program(*arguments):
    """Returns what tare-predict prints as JSON."""
    program = os.path.join(os.environ["TARE_PROGRAMS"], "tare-predict")
    done = subprocess.run([program, *arguments, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


class Wheel(unittest.TestCase):
    def setUp(self):
        self.pictures = sorted(glob.glob("pictures/**/*.png", recursive=True))
        self.digits = tare.load("digits/digits.tare")

    def test_pictures_are_classified_as_the_program_does(self):
        expected = by_the_program("digits/digits.tare", *self.pictures[:3], "--top", "3")
        for path, sample in zip(self.pictures, expected):
            got = self.digits.classify(path, top=3)
            for one, other in zip(got, sample["predictions"]):  # the program has computed a batch of three
                self.assertEqual(one["label"], other["label"])
                self.assertAlmostEqual(one["probability"], other["probability"], places=6)
            with open(path, "rb") as file:
                self.assertEqual(self.digits.classify(file.read(), top=3), got)

    def test_an_array_without_numpy(self):
        pixels = array.array("B", range(256))
        batch = memoryview(pixels).cast("B", (1, 1, 16, 16))
        output = as_lists(self.digits(batch))
        self.assertEqual([len(output), len(output[0])], [1, 10])
        self.assertAlmostEqual(sum(output[0]), 1, places=5)
        floats = array.array("f", (v / 255 for v in pixels))
        near = as_lists(self.digits(memoryview(floats).cast("B").cast("f", (1, 1, 16, 16))))
        for one, other in zip(output[0], near[0]):
            self.assertAlmostEqual(one, other, places=5)
        read_only = memoryview(bytes(pixels)).cast("B", (1, 1, 16, 16))
        self.assertEqual(as_lists(self.digits(read_only)), output)

    def test_rows_of_a_table(self):
        houses = tare.load("houses/houses.tare")
        rows = [{"rooms": 3, "town": "north"}, {"rooms": None, "town": "elsewhere"}]
        got = houses.predict(rows)
        with open("rows.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        for one, other in zip(got, by_the_program("houses/houses.tare", "rows.jsonl")):
            self.assertEqual(one["values"], other["values"])
            self.assertEqual(one["targets"], ["price"])
        self.assertEqual(houses.info["rows"]["target"], "price")

    def test_errors_say_what_is_wrong(self):
        for call, why in ((lambda: tare.load("none.tare"), "none.tare"),
                          (lambda: tare.load("houses.csv"), "houses.csv"),
                          (lambda: tare.load("digits/digits.tare", device="gpu"), "gpu"),
                          (lambda: tare.load("digits/digits.tare", threads=-1), "threads"),
                          (lambda: self.digits([1, 2]), "list"),
                          (lambda: self.digits(array.array("h", [1])), "'h'"),
                          (lambda: self.digits(), "1 inputs"),
                          (lambda: self.digits.classify("none.png"), "none.png"),
                          (lambda: self.digits.predict([{"a": 1}]), "b64"),
                          (lambda: self.digits.predict([]), "without a sample"),
                          (lambda: self.digits.predict([float("nan")]), "JSON")):
            with self.assertRaises(tare.InputError) as caught:
                call()
            self.assertIn(why, str(caught.exception))
            self.assertEqual(caught.exception.code, 2)
        self.digits.close()
        with self.assertRaisesRegex(tare.Error, "closed"):
            self.digits.classify(self.pictures[0])
        with tare.load("digits/digits.tare") as model:
            self.assertEqual(len(model.info["labels"]), 10)

    def test_tensors_are_handed_over_once_or_freed(self):
        picture = self.digits.picture(self.pictures[0])
        before = as_lists(self.digits(picture))
        self.assertEqual(as_lists(self.digits(picture)), before)
        lib = tare._library
        tensor = lib.Tensor(self.raw_picture())
        capsule = tensor.__dlpack__(max_version=(1, 0))
        with self.assertRaisesRegex(tare.Error, "handed"):
            tensor.tolist()
        self.assertIn("dltensor_versioned", repr(capsule))
        del capsule  # nobody has taken it
        with self.assertRaises(BufferError):
            lib.Tensor(self.raw_picture()).__dlpack__()

    def raw_picture(self):
        import ctypes
        pointer = ctypes.c_void_p()
        code = tare._library._library.tare_read_picture(self.digits._handle, self.pictures[0].encode(),
                                                        ctypes.byref(pointer))
        self.assertEqual(code, 0)
        return pointer.value

    def test_threads_share_a_model(self):
        expected = self.digits.classify(self.pictures[0])
        failed = []

        def work():
            for _ in range(20):
                if self.digits.classify(self.pictures[0]) != expected:
                    failed.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_arrays_of_numpy(self):
        batch = numpy.random.default_rng(0).integers(0, 256, (5, 1, 16, 16), dtype=numpy.uint8)
        output = self.digits(batch)
        self.assertIsInstance(output, numpy.ndarray)
        self.assertEqual(output.dtype, numpy.float32)
        numpy.testing.assert_allclose(output.sum(1), 1, rtol=1e-5)
        batch.flags.writeable = False
        numpy.testing.assert_array_equal(self.digits(batch), output)
        turned = numpy.ascontiguousarray(batch.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
        numpy.testing.assert_array_equal(self.digits(turned), output)
        numpy.testing.assert_allclose(self.digits(batch.astype(numpy.float32) / 255), output, atol=1e-6)
        for i in range(5):
            numpy.testing.assert_allclose(self.digits(batch[i:i + 1])[0], output[i], atol=1e-6)
        output[0, 0] = 7  # results are the caller's
        tensor = tare._library.Tensor(self.raw_picture())
        kept = numpy.asarray(tensor)
        with self.assertRaises(BufferError):  # the array would lose its memory
            tensor.__dlpack__(max_version=(1, 0))
        self.assertEqual(kept.tolist(), tensor.tolist())
        del tensor
        self.assertEqual(kept.shape[:2], (1, 1))
        given = numpy.from_dlpack(tare._library.Tensor(self.raw_picture()))
        numpy.testing.assert_array_equal(given, kept)
        with self.assertRaisesRegex(tare.InputError, "float64"):
            self.digits(batch.astype(numpy.float16))
        with self.assertRaisesRegex(tare.InputError, "no "):
            self.digits(numpy.zeros(3, numpy.float32))


if __name__ == "__main__":
    unittest.main()
