"""Two labelled data sets: real texts, and rows of a generated score.

The texts are the docstrings of all functions in Python's library and in packages that Eddyline
needs anyway; the recorded answer is whether a function is PySpark's, but for its pandas API, whose
texts are mostly those of pandas. The proxy has learned words and pairs of words from texts that are
no rows of the data set (naive Bayes).
"""

from __future__ import annotations

import ast
import itertools
import math
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyspark

TAUGHT: Final = 3_000
"""Texts that the proxy has learned from."""

LETTERS: Final = 600
"""Of a docstring, those that are a row's text."""

LEAST_LETTERS: Final = 60
"""Shorter ones ("Return the name.") are anybody's."""

GENERATED: Final = 20_000
"""Rows that are generated: 6 % are accepted."""

_WORDS: Final = re.compile(r"[a-z_]+")


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Rows with the answers of an oracle, and the scores of a proxy."""

    name: str
    values: Sequence[str]
    scores: npt.NDArray[np.float64]
    accepted: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)


def docstrings(folder: Path) -> Iterator[str]:
    """Yield the docstrings of all functions in a folder's files, tests left out."""
    for file in sorted(folder.rglob("*.py")):
        inside = file.relative_to(folder).parts
        if "site-packages" in inside or any(part.startswith("test") for part in inside):
            continue
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):  # templates, and files made to be wrong
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node)
                if text and len(text) >= LEAST_LETTERS:
                    yield text[:LETTERS]


def features(text: str) -> frozenset[str]:
    """Return the words of a text, and the pairs of words that follow each other."""
    words = _WORDS.findall(text.lower())
    return frozenset(words) | {f"{one} {other}" for one, other in itertools.pairwise(words)}


def taught(texts: Sequence[str], answers: Sequence[bool]) -> Callable[[str], float]:
    """Return a score of texts, learned from some: the log of odds, as naive Bayes has it."""
    counts = {True: Counter[str](), False: Counter[str]()}
    for text, answer in zip(texts, answers, strict=True):
        counts[answer].update(features(text))
    yes, no = sum(answers) + 1, len(answers) - sum(answers) + 1
    weights = {
        feature: math.log((counts[True][feature] + 0.5) / yes)
        - math.log((counts[False][feature] + 0.5) / no)
        for feature in counts[True] | counts[False]
        if counts[True][feature] + counts[False][feature] > 1
    }
    return lambda text: math.fsum(weights.get(feature, 0.0) for feature in features(text))


@cache
def texts() -> LabelledRows:
    """Return the docstrings; which package each is from has been recorded."""
    spark = Path(pyspark.__file__).parent
    folders = {
        "pyspark.pandas": spark / "pandas",  # first: its texts are in the folder of PySpark, too
        "python": Path(sysconfig.get_paths()["stdlib"]),
        **{m.__name__: Path(str(m.__file__)).parent for m in (np, pd, pa)},
        "pyspark": spark,
    }
    origins: dict[str, str] = {}
    for name, folder in folders.items():
        for text in docstrings(folder):
            origins.setdefault(text, name)
    order = np.random.default_rng(0).permutation(len(origins))
    every = list(origins)
    values = [every[place] for place in order]
    answers = [origins[value] == "pyspark" for value in values]
    score = taught(values[:TAUGHT], answers[:TAUGHT])
    rows = values[TAUGHT:]
    scores = np.array([score(value) for value in rows])
    return LabelledRows("docstrings", rows, scores, np.array(answers[TAUGHT:]))


@cache
def generated() -> LabelledRows:
    """Return rows whose scores overlap, in steps, as a small model's do; some are missing."""
    random = np.random.default_rng(0)
    accepted = random.random(GENERATED) < 0.06  # noqa: PLR2004
    scores = np.round(random.normal(3.0 * accepted), 2)
    scores[random.random(GENERATED) < 0.01] = np.nan  # noqa: PLR2004
    return LabelledRows("generated", [f"row {n}" for n in range(GENERATED)], scores, accepted)
