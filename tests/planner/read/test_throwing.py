"""Which native conditions are known not to raise, under ANSI."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.planner.read.chains import FilterLink, read_link
from eddyline.planner.read.throwing import may_throw

SAFE = r"""
t RLIKE '^[0-9]+$'
t RLIKE '\\p{Alpha}+(?i)x'
t LIKE 'a!%b' ESCAPE '!'
t ILIKE 'A%b_'
t LIKE ANY ('a_b', '_b')
NOT t LIKE ALL ('a_b', '_b')
regexp_extract(t, '(a)(b)', 2) = 'b'
regexp_replace(t, '[a-c]+', 'x') = 'b'
regexp_count(t, 'a') = 1
regexp_instr(t, 'a') = 1
get(split(t, ','), 0) = 'a'
date_format(ts, 'yyyy-MM-dd HH:mm') = 'a'
format_string('%s-%d%%', t, n) = 'a'
d / 2 > 1
n / 2 > 1
n % 3 = 1
n div 7 = 1
pmod(n, 3) = 1
CAST(ts AS date) = dt
CAST(d AS float) > 1
CAST(n AS boolean)
CAST(dec AS double) > 1
CAST(n AS string) = 'a'
try_cast(t AS int) > 3
try_divide(n, n) > 1
try_add(n, n) > 1
sqrt(n) > 2
left(t, 2) = 'a'
replace(t, 'a', 'b') = 'a'
datediff(dt, dt) = n
trunc(dt, 'MM') = dt
date_trunc('hour', ts) = ts
get_json_object(t, '$.a') = 'x'
nullif(n, 3) = 4
hash(t) % 10 = 3
exists(a, x -> x LIKE 'b%' AND x <> t)
forall(a, x -> x RLIKE '^b')
size(filter(a, x -> x > t)) > 1
size(transform(a, x -> upper(x))) = n
""".strip().splitlines()

THROWING = r"""
t RLIKE '^[0-9+$'
t RLIKE t
t LIKE 'a!b' ESCAPE '!'
t LIKE ANY ('a\\b_', '_b')
regexp_extract(t, '(a)(b)', 3) = 'b'
regexp_replace(t, '[a-c]+', '$1') = 'b'
split(t, ',')[0] = 'a'
split(t, t) = a
date_format(ts, 'qqqq') = 'a'
format_string('%d', t) = 'a'
format_string('%s %s', t) = 'a'
d / n > 1
n / 0 > 1
n div -1 > 1
CAST(n AS tinyint) = 3
CAST(t AS int) = 3
CAST(d AS int) = 3
n + 1 > 3
abs(n) > 2
element_at(a, n) = 'a'
to_date(t, 'yyyy') = dt
exists(a, x -> CAST(x AS int) > 3)
""".strip().splitlines()


@pytest.mark.parametrize("condition", [*SAFE, *THROWING])
def test_what_may_raise(spark: SparkSession, condition: str) -> None:
    frame = spark.createDataFrame(
        [], "t string, n int, d double, dec decimal(10, 2), ts timestamp, a array<string>, dt date"
    ).localCheckpoint()
    found = frame.where(condition)
    assert catalyst.is_classic(found)
    link, _ = read_link(catalyst.optimized_plan(found))
    assert isinstance(link, FilterLink)
    assert any(map(may_throw, link.conjuncts)) == (condition in THROWING)
