"""Puts predictions by a bundle of pictures beside Python torch and ONNX Runtime on the same model: time to the first
answer of a new process, predictions a second in batches of 1 and 64, and the memory of the process.

Run: python bench_inference.py FOLDER_OF_PROGRAMS BUNDLE SHAPE PICTURE [ROUNDS]

SHAPE is that of a sample, such as 1,28,28. The others get the model from `tare export --format pt2` and `onnx`. Needs
the packages numpy, onnxruntime, torch, and the wheel of Tare (`cmake --build build --target wheel`). Its module is
measured with LibTorch, twice as the control, and without it. `tare predict` is measured with both engines; it predicts
PICTURE, a file, and ends. A side that is missing is left out and named. Each process computes with one thread; the sides
alternate, and the medians are printed with their ratios to the first side.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

LIBTORCH = {"TARE_ENGINE": "libtorch"}
SIDES = {
    "tare": ("import tare\n"
             "model = tare.load({bundle!r}, threads=1)\n"
             "call = lambda x: model(x)\n"),
    "torch .pt2": ("import torch\n"
                   "torch.set_num_threads(1)\n"
                   "program = torch.export.load({pt2!r}).module()\n"
                   "def call(x):\n"
                   "    with torch.no_grad():\n"
                   "        return torch.softmax(program(torch.from_numpy(x)), 1).numpy()\n"),
    "onnxruntime": ("import onnxruntime\n"
                    "options = onnxruntime.SessionOptions()\n"
                    "options.intra_op_num_threads = 1\n"
                    "session = onnxruntime.InferenceSession({onnx!r}, options)\n"
                    "name = session.get_inputs()[0].name\n"
                    "call = lambda x: session.run(None, {{name: x}})[0]\n"),
}
MEASURE = """
import json, resource, sys, time
import numpy
{made}
one = numpy.zeros((1, *{shape}), "float32")
numpy.asarray(call(one))
sys.stdout.write("first\\n")
sys.stdout.flush()

def rate(batch):
    x = numpy.zeros((batch, *{shape}), "float32")
    for _ in range(3):
        call(x)
    begin, calls = time.perf_counter(), 0
    while time.perf_counter() - begin < 1:
        call(x)
        calls += 1
    return calls * batch / (time.perf_counter() - begin)

print(json.dumps({{"rate 1": rate(1), "rate 64": rate(64),
                  "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}}))
"""


def measured(script, more):
    """Returns the figures of one process with more variables in its environment; None: it failed, which is printed."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **more})
    line = process.stdout.readline()
    first = time.perf_counter() - begin
    rest, errors = process.communicate()
    if line != "first\n" or process.returncode != 0:
        print(errors.strip().splitlines()[-1] if errors.strip() else "no answer")
        return None
    return {"first ms": 1000 * first, **json.loads(rest)}


def measured_program(*command):
    """Returns the time and the memory of a program that predicts once; None: it failed."""
    begin = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - begin
    return {"first ms": 1000 * seconds, "MiB": usage.ru_maxrss / 1024} if status == 0 else None


def main():
    programs, bundle, picture = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[4]
    shape = tuple(map(int, sys.argv[3].split(",")))
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    tare = os.path.join(programs, "tare")
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        files = {"bundle": bundle}
        for form in ("pt2", "onnx"):
            files[form] = os.path.join(folder, "net." + form)
            subprocess.run([tare, "export", bundle, "--format", form, "--out", files[form]],
                           check=True, stdout=subprocess.DEVNULL, env=clean)
        print("files:", ", ".join(f"{name} {os.path.getsize(path):,} B" for name, path in files.items()))
        scripts = {name: MEASURE.format(made=made.format(**files), shape=shape) for name, made in SIDES.items()}

        def side(name, more=None):
            return lambda: measured(scripts[name], more or {})

        sides = {"tare": side("tare", LIBTORCH), "tare again": side("tare", LIBTORCH),
                 "tare, lite": side("tare", {"TARE_ENGINE": "lite"}),
                 "torch .pt2": side("torch .pt2"), "onnxruntime": side("onnxruntime"),
                 "tare predict": lambda: measured_program(tare, "predict", bundle, picture, "--engine", "libtorch"),
                 "  without": lambda: measured_program(tare, "predict", bundle, picture, "--engine", "lite")}
        found = {name: [] for name in sides}
        for _ in range(rounds):
            for name in list(found):
                figures = sides[name]()
                if figures is None:
                    print("left out:", name)
                    del found[name]
                else:
                    found[name].append(figures)
        print(f"{'':12}  first ms   ratio  one/s   ratio  64/s    ratio  MiB    ratio")
        middle = {name: {key: statistics.median(one[key] for one in all_of) for key in all_of[0]}
                  for name, all_of in found.items()}
        for name, figures in middle.items():
            print(f"{name:12}" + "".join(f"  {figures[key]:8,.0f} {figures[key] / middle['tare'][key]:6.2f}"
                                         if key in figures else " " * 17
                                         for key in ("first ms", "rate 1", "rate 64", "MiB")))


if __name__ == "__main__":
    main()
