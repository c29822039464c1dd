"""Reads the event file of a run with TensorBoard's own reader, straight and resumed.

    python3 tensorboard_test.py FOLDER_OF_TARE
"""
import math
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    print("skipped: the Python package tensorboard is not installed")
    sys.exit(77)

RECIPE = """
name: run
folder: {folder}
seed: 1
batch: 16
workers: 0
device: cpu
save_every: 5
data: {{name: generated_digits, count: 320, size: 12}}
model: {{name: mlp, hidden: [16]}}
callbacks: [throughput, {{tensorboard: {{every: 1, histograms: true, gradients: true, images: 10}}}}]
phases: [{{name: only, epochs: {epochs}, lr: 1.0e-2}}]
"""


def events(folder):
    read = event_accumulator.EventAccumulator(
        str(folder / "run/tensorboard"), size_guidance={"scalars": 0, "histograms": 0, "images": 0, "tensors": 0}
    )
    read.Reload()
    return read


def recipe(folder, epochs):
    path = folder / "recipe.yaml"
    path.write_text(RECIPE.format(folder=folder, epochs=epochs))
    return path


def run(tare, path, *more):
    return [str(tare), "run", str(path), *more]


def check_whole(tare, folder):
    subprocess.run(run(tare, recipe(folder, 3)), check=True, stdout=subprocess.DEVNULL)
    read = events(folder)
    tags = set(read.Tags()["scalars"])
    for tag in ("train/loss", "train/lr", "epoch/train_loss", "epoch/valid_loss", "epoch/accuracy",
                "epoch/samples_per_s", "memory/allocated_mib", "memory/peak_mib",
                "throughput/samples_per_s"):
        assert tag in tags, (tag, tags)
    losses = read.Scalars("train/loss")
    steps = len(losses) // 3
    assert [one.step for one in losses] == list(range(1, 3 * steps + 1)), losses
    assert all(math.isfinite(one.value) for one in losses)
    assert abs(losses[0].wall_time - time.time()) < 3600
    assert [one.step for one in read.Scalars("epoch/train_loss")] == [steps, 2 * steps, 3 * steps]
    names = read.Tags()["histograms"]
    weights = [name for name in names if name.startswith("weights/")]
    gradients = [name.replace("weights/", "gradients/") for name in weights]
    assert weights and sorted(names) == sorted(weights + gradients), names
    assert [one.step for one in read.Histograms(gradients[0])] == [0, steps, 2 * steps]
    for name in names:
        value = read.Histograms(name)[-1].histogram_value
        assert value.num == sum(value.bucket) > 0
        assert value.bucket_limit == sorted(value.bucket_limit)
        assert value.bucket_limit[-1] == value.max >= value.min
    images = read.Images("train/images")
    assert [one.step for one in images] == [0, steps, 2 * steps], images
    assert (images[0].height, images[0].width) == (2 * 12 + 2, 8 * 12 + 7 * 2), images[0]
    assert images[0].encoded_image_string.startswith(b"\x89PNG")
    return losses


def check_texts(tare, folder):
    (folder / "text.txt").write_text("to be or not to be, " * 200)
    text = RECIPE.replace("name: generated_digits, count: 320, size: 12", "name: text, file: {file}, context: 16")
    text = text.replace("name: mlp, hidden: [16]", "name: gpt, width: 16, layers: 1, heads: 2")
    text = text.replace("throughput, ", "{{sample_text: {{length: 5}}}}, ").replace(", images: 10", "")
    path = folder / "recipe.yaml"
    path.write_text(text.format(folder=folder, epochs=2, file=folder / "text.txt") + "metrics: []\n")
    subprocess.run(run(tare, path), check=True, stdout=subprocess.DEVNULL)
    read = events(folder)
    assert "sample_text" in read.Tags()["tensors"], read.Tags()
    assert read.SummaryMetadata("sample_text").plugin_data.plugin_name == "text"
    texts = read.Tensors("sample_text")
    written = [(folder / f"run/samples/epoch-{i}.txt").read_text()[:-1] for i in (1, 2)]
    assert [one.tensor_proto.string_val[0].decode() for one in texts] == written, texts


def check_resumed(tare, folder):
    path = recipe(folder, 40)
    straight = folder / "straight"
    straight.mkdir()
    subprocess.run(run(tare, recipe(straight, 40)), check=True, stdout=subprocess.DEVNULL)
    killed = subprocess.Popen(run(tare, path), stdout=subprocess.DEVNULL)
    while killed.poll() is None and not (folder / "run/autosave-0").exists():
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    subprocess.run(run(tare, path, "--resume", "auto"), check=True, stdout=subprocess.DEVNULL)
    for tag in ("train/loss", "epoch/valid_loss"):
        once = [(one.step, one.value) for one in events(straight).Scalars(tag)]
        assert [(one.step, one.value) for one in events(folder).Scalars(tag)] == once, tag


def main():
    tare = pathlib.Path(sys.argv[1]) / "tare"
    for check in (check_whole, check_texts, check_resumed):
        with tempfile.TemporaryDirectory() as folder:
            check(tare, pathlib.Path(folder))


main()
