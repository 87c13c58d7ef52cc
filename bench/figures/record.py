"""What ``docs/figures.md`` is drawn from: ``docs/figures.json``, and its pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from bench.figures.figure import TEXTS, Figure

DOCS: Final = Path(__file__).parents[2] / "docs"


def record(
    figures: Mapping[str, tuple[Figure, float]], order: Iterable[str], docs: Path = DOCS
) -> None:
    """Put figures, each with the seconds that it took, beside those that are recorded already.

    What is recorded of others stays. Raises ValueError for a quick figure, which says less.
    """
    if any(figure.warning for figure, _ in figures.values()):
        raise ValueError("a quick figure is not recorded")
    path = docs / "figures.json"
    known: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name, (figure, seconds) in figures.items():
        known[name] = {**figure.summary, "seconds": round(seconds)}
        if TEXTS[name].get("picture"):
            (docs / "pictures" / f"{name}.svg").write_text(figure.svg, "utf-8")
    kept = {name: known[name] for name in order if name in known}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
