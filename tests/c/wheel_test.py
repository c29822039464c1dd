"""Makes the wheel, installs it in an empty environment, and runs the tests of in_wheel.py and, without LibTorch, of
in_lite_wheel.py there.

Run: python wheel_test.py FOLDER_OF_PROGRAMS LIBRARY LITE_LIBRARY VERSION LIBTORCH_MINOR LIBTORCH_FOLDER
"""
import filecmp
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE = os.path.join(HERE, "../../framework/python/make_wheel.py")
RECIPE = """name: {name}
folder: .
batch: 16
data: {data}
model: {model}
loss: {loss}
metrics: []
phases: [{{epochs: 1, lr: 1e-2}}]
export: {name}.tare
progress: false
"""


def run(*command, **options):
    subprocess.run([os.fspath(part) for part in command], check=True, **options)


def bundles(programs, folder):
    """Trains two models of pictures and one of a table, each for an epoch."""
    recipes = {
        "digits": {"data": "{name: generated_digits, count: 64, size: 16}", "model": "{name: convnet, width: 4}",
                   "loss": "cross_entropy"},
        "houses": {"data": "{name: csv, file: houses.csv, target: price}", "model": "{name: tabular, hidden: [8]}",
                   "loss": "mse"},
        "small": {"data": "{name: generated_digits, count: 64, size: 16}", "model": "{name: resnet9, width: 2}",
                  "loss": "cross_entropy"}}
    chance = random.Random(3)
    with open(os.path.join(folder, "houses.csv"), "w", encoding="utf-8") as table:
        table.write("rooms,town,price\n")
        for _ in range(40):
            table.write(f"{chance.randint(1, 9)},{chance.choice(['north', 'south'])},{chance.random():.3f}\n")
    for name, recipe in recipes.items():
        with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
            file.write(RECIPE.format(name=name, **recipe).replace("progress: false\n", ""))
        run(os.path.join(programs, "tare"), "run", name + ".yaml", "--quiet", cwd=folder, stdout=subprocess.DEVNULL)
    run(os.path.join(programs, "tare"), "data", "make", "generated_digits", "--count", "20", "--png",
        "--out", "pictures", cwd=folder, stdout=subprocess.DEVNULL)


def examples(programs, python, environment, folder):
    """Runs the recipes in C and in Python, which must name a class as tare-predict does."""
    picture = glob.glob(os.path.join(folder, "pictures/**/*.png"), recursive=True)[0]
    bundle = os.path.join(folder, "digits/digits.tare")

    def said(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    expected = said(os.path.join(programs, "tare-predict"), bundle, picture)
    script = os.path.join(HERE, "../../recipes/classify.py")
    if said(python, "-B", script, bundle, picture) != expected:
        sys.exit("classify.py prints something else than tare-predict: " + expected)
    best = json.loads(said(os.path.join(programs, "classify_c"), bundle, picture))[0]["predictions"]
    if len(best) != 3 or f": {best[0]['label']} {best[0]['probability']:.4f}" not in expected:
        sys.exit(f"classify_c prints something else than tare-predict: {best}, {expected}")
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: the memory of classify_c is not checked")
        return
    # LibTorch compares bytes that it has not set; what it reads or writes outside of blocks, and leaks, is reported.
    valgrind = ["valgrind", "-q", "--undef-value-errors=no", "--leak-check=full", "--show-leak-kinds=definite",
                "--errors-for-leak-kinds=definite", "--error-exitcode=9"]
    strict = [option for option in valgrind if option != "--undef-value-errors=no"]
    small = os.path.join(folder, "small/small.tare")
    for program, checks, good in (("classify_c", valgrind, bundle), ("classify_c_lite", strict, small)):
        for arguments, status in (([good, picture], 0), ([good, "none.png"], 1), (["none.tare", picture], 1)):
            checked = subprocess.run([*checks, os.path.join(programs, program), *arguments], env=environment,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if checked.returncode != status:
                sys.exit(f"{program} {arguments}: {checked.returncode}\n{checked.stderr}")


def main():
    programs, library, lite, version, minor, libtorch = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for out in ("one", "two"):
            run(sys.executable, "-B", MAKE, "--library", library, "--lite", lite, "--version", version, "--libtorch", minor, "--out",
                os.path.join(folder, out), stdout=subprocess.DEVNULL)
            made += glob.glob(os.path.join(folder, out, "*.whl"))
        if len(made) != 2 or not filecmp.cmp(*made, shallow=False):
            sys.exit("two wheels of one library differ")
        bundles(programs, folder)
        run(sys.executable, "-m", "venv", os.path.join(folder, "venv"))
        python = os.path.join(folder, "venv/bin/python")
        run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", made[0])
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TARE"))}
        environment["TARE_PROGRAMS"] = programs
        # Without a LibTorch the small engine predicts, and the import says what to do where that is not wanted.
        run(python, "-B", os.path.join(HERE, "in_lite_wheel.py"), env=environment, cwd=folder)
        refused = subprocess.run([python, "-c", "import tare"], env={**environment, "TARE_ENGINE": "libtorch"},
                                 capture_output=True, text=True)
        if refused.returncode == 0 or "set TARE_LIBTORCH" not in refused.stderr:
            sys.exit("without LibTorch: " + refused.stderr)
        environment["TARE_LIBTORCH"] = libtorch
        environment["OMP_NUM_THREADS"] = "1"
        script = os.path.join(HERE, "in_wheel.py")
        run(python, "-B", script, env=environment, cwd=folder)
        examples(programs, python, environment, folder)
        try:
            import numpy
        except ImportError:
            print("numpy is not installed: the tests with its arrays are skipped")
            return
        environment["PYTHONPATH"] = os.path.dirname(os.path.dirname(numpy.__file__))
        run(python, "-B", script, env=environment, cwd=folder)


if __name__ == "__main__":
    main()
