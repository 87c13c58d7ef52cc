"""What standing queries cannot be given is refused by the argument's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eddyline.standing.arguments import (
    checked_frames,
    checked_name,
    checked_names,
    checked_state,
)
from eddyline.standing.markers import require_columns


@pytest.mark.parametrize(
    ("check", "kind", "message"),
    [
        (lambda: checked_frames(None, None), TypeError, "streams are DataFrames by name.* None"),
        (lambda: checked_frames([3], None), TypeError, r"streams are DataFrames by name.* \[3\]"),
        (
            lambda: checked_frames("rate", None),
            TypeError,
            "streams are DataFrames .* 'rate'",
        ),
        (lambda: checked_frames({}, 3), TypeError, "tables are DataFrames by name.* 3"),
        (lambda: checked_frames({}, []), TypeError, r"tables are DataFrames by name.* \[\]"),
        (lambda: checked_frames({}, None), ValueError, "need a stream"),
        (lambda: checked_frames({"a b": 3}, None), ValueError, "'a b' is no name for SQL"),
        (lambda: checked_state(None), TypeError, "state is the path of a directory, not None"),
        (lambda: checked_state(3), TypeError, "state is the path of a directory, not 3"),
        (lambda: checked_state(""), ValueError, "state is the path of a directory, not ''"),
        (lambda: checked_name(None), ValueError, "a query's name is a text, not None"),
        (lambda: checked_name(""), ValueError, "a query's name is a text, not ''"),
        (lambda: checked_name("a\0b"), ValueError, "has no NUL"),
        (lambda: checked_name("/" * 70), ValueError, "too long"),
        (lambda: checked_names((), "drop"), TypeError, "drop takes the names .*, not nothing"),
        (lambda: checked_names((["a"],), "pause"), TypeError, r"pause takes the names .* \['a'\]"),
        (lambda: require_columns("SELECT :x", ["y"]), ValueError, "no parameter x for :x"),
    ],
)
def test_what_is_refused(check: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        check()


def test_what_is_taken(tmp_path: Path) -> None:
    assert checked_state(tmp_path) == checked_state(str(tmp_path)) == tmp_path
    assert checked_state("a") == Path("a").absolute()
    assert checked_name("../../x") == "../../x"
    assert checked_names(("a", "b"), "drop") == ("a", "b")
