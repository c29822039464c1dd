"""Writes metrics.json: figures of scikit-learn for the outputs and targets that stand beside them.

Run: python3 -m venv V && V/bin/pip install scikit-learn==1.9.1 && V/bin/python metrics.py > metrics.json

All inputs are multiples of 1/64, which float32 holds exactly. A label of -100 is not counted: scikit-learn gets the rest.
"cases": the metric, its options in YAML, which inputs it gets, and its value. The perplexity is the exponential of
log_loss; iou is jaccard_score, and dice is f1_score, both macro.
"""
import json

import numpy as np
import sklearn
from sklearn import metrics as m

rng = np.random.default_rng(7)
IGNORED = -100


def grid(*shape, scale=2.0):
    return np.round(rng.normal(0, scale, shape) * 64) / 64


def distinct(rows, classes):
    """Scores of which no two in a row are equal, so that ranks are no matter of taste."""
    return np.stack([rng.permutation(np.arange(-40, 40))[:classes] for _ in range(rows)]) / 16.0


def softmax(x, axis=1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def one_dimension(scores, labels):
    """Labels [n, ...] and scores [n, c, ...] as [n] and [n, c], without ignored labels."""
    flat = np.moveaxis(scores, 1, -1).reshape(-1, scores.shape[1])
    kept = labels.reshape(-1) != IGNORED
    return flat[kept], labels.reshape(-1)[kept]


inputs, cases = {}, []


def case(metric, options, data, value):
    cases.append({"metric": metric, "options": options, "data": data, "value": float(value)})


def averaged(data, truth, guess, options):
    for average in ("macro", "micro", "weighted"):
        text = ", ".join([f"average: {average}"] + options)
        for name, score in (("precision", m.precision_score), ("recall", m.recall_score), ("f1", m.f1_score)):
            case(name, "{" + text + "}", data, score(truth, guess, average=average, zero_division=0))


# Five classes, one of which no label has, and -100.
scores, labels = distinct(83, 5), rng.integers(0, 4, 83)
scores[np.arange(83), labels] += rng.choice([0, 3], 83)
labels[rng.random(83) < 0.1] = IGNORED
scores = np.round(scores * 64) / 64 + np.arange(5) / 64
inputs["classes"] = {"output": scores.tolist(), "target": labels.tolist()}
s, y = one_dimension(scores, labels)
case("accuracy", "", "classes", m.accuracy_score(y, s.argmax(1)))
case("error_rate", "", "classes", 1 - m.accuracy_score(y, s.argmax(1)))
for k in (1, 2, 3):
    case("top_k", "{k: %d}" % k, "classes", m.top_k_accuracy_score(y, s, k=k, labels=range(5)))
case("balanced_accuracy", "", "classes", m.balanced_accuracy_score(y, s.argmax(1)))
averaged("classes", y, s.argmax(1), [])
case("iou", "", "classes", m.jaccard_score(y, s.argmax(1), average="macro", zero_division=0))
case("dice", "", "classes", m.f1_score(y, s.argmax(1), average="macro", zero_division=0))
case("perplexity", "", "classes", np.exp(m.log_loss(y, softmax(s), labels=range(5))))

# Every class has samples, as a curve for each needs.
scores, labels = grid(71, 4), rng.integers(0, 4, 71)
scores[np.arange(71), labels] += 1
labels[:3] = IGNORED
inputs["ranked"] = {"output": scores.tolist(), "target": labels.tolist()}
s, y = one_dimension(scores, labels)
case("auroc", "", "ranked", m.roc_auc_score(y, softmax(s), multi_class="ovr", average="macro"))
case("average_precision", "", "ranked", m.average_precision_score(y, softmax(s), average="macro"))

# Two classes, with many equal scores.
scores, labels = np.round(rng.normal(0, 1, (90, 2)) * 2) / 2, rng.integers(0, 2, 90)
scores[:, 1] += labels / 2
inputs["two_classes"] = {"output": scores.tolist(), "target": labels.tolist()}
case("auroc", "", "two_classes", m.roc_auc_score(labels, scores[:, 1] - scores[:, 0]))
case("average_precision", "", "two_classes", m.average_precision_score(labels, scores[:, 1] - scores[:, 0]))

# Four labels, each there or not; no sample has or is predicted to have the last one often.
logits = grid(61, 4)
targets = (rng.random((61, 4)) < [0.5, 0.3, 0.6, 0.1]).astype(float)
logits[:, 3] -= 2
inputs["labels"] = {"output": logits.tolist(), "target": targets.tolist()}
for threshold in (0.5, 0.7):
    guess = 1 / (1 + np.exp(-logits)) > threshold
    text = f"threshold: {threshold}"
    case("accuracy", "{" + text + "}", "labels", m.accuracy_score(targets, guess))
    averaged("labels", targets, guess, [text])
    case("iou", "{" + text + "}", "labels", m.jaccard_score(targets, guess, average="macro", zero_division=0))
    case("dice", "{" + text + "}", "labels", m.f1_score(targets, guess, average="macro", zero_division=0))
case("auroc", "", "labels", m.roc_auc_score(targets, logits, average="macro"))
case("average_precision", "", "labels", m.average_precision_score(targets, logits, average="macro"))

# One output [n, 1], as scikit-learn's binary average has it.
inputs["one_label"] = {"output": logits[:, :1].tolist(), "target": targets[:, :1].tolist()}
guess = logits[:, 0] > 0
case("f1", "{threshold: 0.5}", "one_label", m.f1_score(targets[:, 0], guess))
case("precision", "{threshold: 0.5}", "one_label", m.precision_score(targets[:, 0], guess))
case("accuracy", "{threshold: 0.5}", "one_label", m.accuracy_score(targets[:, 0], guess))
case("auroc", "", "one_label", m.roc_auc_score(targets[:, 0], logits[:, 0]))

# Values near 0, and far from 0 with a small variance; the last element of the former is constant.
values = grid(53, 3)
outputs = values + grid(53, 3, scale=0.5)
values[:, 2] = 1.5
inputs["values"] = {"output": outputs.tolist(), "target": values.tolist()}
far = 100000 + grid(53, 2)
far_outputs = far + grid(53, 2, scale=0.5)
inputs["far"] = {"output": far_outputs.tolist(), "target": far.tolist()}
for name, o, t in (("values", outputs, values), ("far", far_outputs, far)):
    case("mse", "", name, m.mean_squared_error(t, o))
    case("mae", "", name, m.mean_absolute_error(t, o))
    case("rmse", "", name, m.root_mean_squared_error(t.reshape(-1), o.reshape(-1)))
    case("r2", "", name, m.r2_score(t, o))

# Pixels of three classes; -100, then also class 0, is not counted.
pixels, mask = distinct(7 * 30, 3).reshape(7, 5, 6, 3).transpose(0, 3, 1, 2), rng.integers(0, 3, (7, 5, 6))
mask[rng.random(mask.shape) < 0.15] = IGNORED
inputs["pixels"] = {"output": pixels.tolist(), "target": mask.tolist()}
s, y = one_dimension(pixels, mask)
case("iou", "", "pixels", m.jaccard_score(y, s.argmax(1), average="macro"))
case("dice", "", "pixels", m.f1_score(y, s.argmax(1), average="macro"))
case("accuracy", "", "pixels", m.accuracy_score(y, s.argmax(1)))
case("perplexity", "", "pixels", np.exp(m.log_loss(y, softmax(s), labels=range(3))))
s, y = s[y != 0], y[y != 0]
case("iou", "{ignore_index: 0}", "pixels", m.jaccard_score(y, s.argmax(1), labels=[1, 2], average="macro"))
case("dice", "{ignore_index: 0}", "pixels", m.f1_score(y, s.argmax(1), labels=[1, 2], average="macro"))
case("perplexity", "{ignore_index: 0}", "pixels", np.exp(m.log_loss(y, softmax(s), labels=range(3))))

print(json.dumps({"scikit-learn": sklearn.__version__, "inputs": inputs, "cases": cases}, separators=(",", ":")))
