"""What the eddies refuse of what they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from eddyline.engine.modules.concurrent_function import answers_later
from eddyline.expressions import Call, Expression
from eddyline.expressions.vector import Function


def require_functions(functions: Sequence[Function], uses: Iterable[Expression]) -> None:
    """Raise ValueError where a call names none of the functions."""
    for expression in uses:
        for node in expression.walk():
            if isinstance(node, Call) and not 0 <= node.function < len(functions):
                raise ValueError(
                    f"{node} calls function {node.function}, and there are {len(functions)}"
                )


def require_answers_at_once(functions: Sequence[Function]) -> None:
    """Raise ValueError where functions of a join answer later."""
    if later := [n for n, each in enumerate(functions) if answers_later(each)]:
        raise ValueError(f"functions {later} answer later, which those of a join cannot")


def require_lengths(columns: Sequence[pa.Array], rows: int) -> None:
    """Raise ValueError unless columns have so many rows each, which may be none."""
    if rows < 0 or any(len(column) != rows for column in columns):
        raise ValueError(f"{rows} rows cannot have columns of lengths {list(map(len, columns))}")
