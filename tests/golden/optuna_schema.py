"""Writes optuna_schema.txt: the tables of a new Optuna study in SQLite.

Run: python3 -m venv V && V/bin/pip install optuna==5.0.0 && V/bin/python optuna_schema.py > optuna_schema.txt
"""
import os
import sqlite3
import tempfile

import optuna

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "study.sqlite")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    optuna.create_study(study_name="schema", storage=f"sqlite:///{path}")
    database = sqlite3.connect(path)
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        for _, name, kind, not_null, _, key in database.execute(f"PRAGMA table_info({table})").fetchall():
            print(table, name, kind, not_null, key)
    for (version,) in database.execute("SELECT schema_version FROM version_info"):
        print("schema", version)
    for (version,) in database.execute("SELECT version_num FROM alembic_version"):
        print("head", version)
