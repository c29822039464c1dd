"""Puts predictions by a bundle beside Python torch and ONNX Runtime on the same model: time to the first answer of a new
process, predictions a second in batches of 1 and 64, and the memory of the process.

Run: python bench_inference.py FOLDER_OF_PROGRAMS BUNDLE SHAPE [ROUNDS]

SHAPE is that of a sample, such as 1,28,28. The others get the model from `tare export --format pt2` and `onnx`. Needs
the packages numpy, onnxruntime, torch, and the wheel of Tare (`cmake --build build --target wheel`), whose module calls
libtare.so. A side that is missing is left out and named. Each process computes with one thread; the sides alternate, and
the medians are printed with their ratios to the module of Tare, which is measured twice as the control.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

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


def measured(script):
    """Returns the figures of one process; None: it failed, which is printed."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    first = time.perf_counter() - begin
    rest, errors = process.communicate()
    if line != "first\n" or process.returncode != 0:
        print(errors.strip().splitlines()[-1] if errors.strip() else "no answer")
        return None
    return {"first ms": 1000 * first, **json.loads(rest)}


def main():
    programs, bundle, shape = sys.argv[1], os.path.abspath(sys.argv[2]), tuple(map(int, sys.argv[3].split(",")))
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        files = {"bundle": bundle}
        for form in ("pt2", "onnx"):
            files[form] = os.path.join(folder, "net." + form)
            subprocess.run([os.path.join(programs, "tare"), "export", bundle, "--format", form, "--out", files[form]],
                           check=True, stdout=subprocess.DEVNULL, env=clean)
        print("files:", ", ".join(f"{name} {os.path.getsize(path):,} B" for name, path in files.items()))
        scripts = {name: MEASURE.format(made=made.format(**files), shape=shape) for name, made in SIDES.items()}
        scripts["tare again"] = scripts["tare"]
        found = {name: [] for name in scripts}
        for _ in range(rounds):
            for name in list(found):
                figures = measured(scripts[name])
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
                                         for key in ("first ms", "rate 1", "rate 64", "MiB")))


if __name__ == "__main__":
    main()
