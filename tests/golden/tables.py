"""Writes the tables of recipes/configs/table/, and prints the figures of scikit-learn on the same splits.

Run: python3 -m venv V && V/bin/pip install scikit-learn==1.9.1 pandas==3.1.1 && V/bin/python tables.py FOLDER

FOLDER gets breast_cancer.csv and diabetes.csv, which hold the training rows, and breast_cancer_valid.csv and
diabetes_valid.csv. The data are those of scikit-learn's package, so that nothing is downloaded: Breast Cancer Wisconsin
(Diagnostic), 569 rows, and the diabetes data of Efron and others (2004), 442 rows in their own units.
"""
import pathlib
import sys

import pandas as pd
from sklearn import datasets, ensemble, linear_model, metrics, model_selection, pipeline, preprocessing

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)


def written(name, frame, target, stratify):
    """Writes both splits of a table and returns them."""
    train, valid = model_selection.train_test_split(
        frame, test_size=0.2, random_state=0, stratify=frame[target] if stratify else None)
    train.to_csv(folder / f"{name}.csv", index=False)
    valid.to_csv(folder / f"{name}_valid.csv", index=False)
    return train.drop(columns=target), train[target], valid.drop(columns=target), valid[target]


def scaled(model):
    return pipeline.make_pipeline(preprocessing.StandardScaler(), model)


def name_of(model):
    return type(model[-1] if isinstance(model, pipeline.Pipeline) else model).__name__


loaded = datasets.load_breast_cancer(as_frame=True)
frame = loaded.frame.assign(diagnosis=[loaded.target_names[t] for t in loaded.target]).drop(columns="target")
x, y, x_valid, y_valid = written("breast_cancer", frame, "diagnosis", stratify=True)
for model in (scaled(linear_model.LogisticRegression(max_iter=1000)),
              ensemble.RandomForestClassifier(n_estimators=500, random_state=0)):
    model.fit(x, y)
    losses = metrics.log_loss(y_valid, model.predict_proba(x_valid))
    print(f"breast_cancer {name_of(model)}: accuracy {model.score(x_valid, y_valid):.4f}, log loss {losses:.4f}")

loaded = datasets.load_diabetes(as_frame=True, scaled=False)
x, y, x_valid, y_valid = written("diabetes", loaded.frame.astype({"sex": int}), "target", stratify=False)
x, x_valid = (pd.get_dummies(part, columns=["sex"], drop_first=True, dtype=float) for part in (x, x_valid))
for model in (scaled(linear_model.Ridge()), ensemble.RandomForestRegressor(n_estimators=500, random_state=0)):
    model.fit(x, y)
    predicted = model.predict(x_valid)
    print(f"diabetes {name_of(model)}: R2 {metrics.r2_score(y_valid, predicted):.4f}, "
          f"RMSE {metrics.root_mean_squared_error(y_valid, predicted):.3f}, "
          f"MAE {metrics.mean_absolute_error(y_valid, predicted):.3f}")
