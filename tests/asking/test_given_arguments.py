"""What sources and prices cannot be made of is refused where it is said, by the argument's name."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.asking.http_lookup import HttpLookup
from eddyline.asking.price import Price
from eddyline.asking.sql_lookup import SqlLookup

URL = "https://api.example/{id}"


@pytest.mark.parametrize("url", [3, None, b"https://api.example/{id}", ["https://api.example"]])
@pytest.mark.parametrize("make", [HttpLookup, lambda url: SqlLookup(url, "t")])
def test_a_url_is_a_text(make: Any, url: object) -> None:  # noqa: ANN401 - a class or a function
    with pytest.raises(TypeError, match=r"^url is a text, as '\w+://.*', not "):
        make(url)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"params": 3}, "params is a mapping of texts.* has a int"),
        ({"params": {"hour": 3}}, "params is a mapping of texts.* has a int"),
        ({"headers": ["a"]}, "headers is a mapping of texts.* has a list"),
        ({"headers": {"key": b"secret"}}, "headers is a mapping of texts.* has a bytes$"),
        ({"columns": {1: "a"}}, "columns is a mapping of texts.* has a int"),
        ({"columns": None}, "columns is a mapping of texts.* has a NoneType"),
        ({"method": None}, "method is a text, as 'GET', not None"),
        ({"rows": 3}, "rows is a text, as 'data.rows', not 3"),
        ({"pages": "next"}, "pages is a NextLink, PageNumber or Cursor, or None, not 'next'"),
        ({"allow_hosts": "a.example"}, "allow_hosts are names, .* not 'a.example'"),
        ({"allow_hosts": 3}, "allow_hosts are names, .* not 3"),
        ({"verify": "no"}, "verify is True or False, not 'no'"),
        ({"max_bytes": "1MB"}, "max_bytes is a whole number from 1 on, not '1MB'"),
    ],
)
def test_arguments_of_a_service(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        HttpLookup(URL, **given)


@pytest.mark.parametrize("unit", [None, 3, b"USD"])
@pytest.mark.parametrize("cost", [None, 2])
def test_a_unit_is_a_text(unit: Any, cost: float | None) -> None:  # noqa: ANN401 - none it is
    with pytest.raises(TypeError, match="unit is a text, as 'USD', not "):
        Price(cost, unit)
