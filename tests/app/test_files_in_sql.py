"""Files that a query names where tables stand, and texts that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.app.files_in_sql import files_in, text_in, tokens, with_files_as_tables
from eddyline.app.invocation import Query, TableSource


@pytest.mark.parametrize(
    ("sql", "paths"),
    [
        ("SELECT * FROM 'x.csv'", ["x.csv"]),
        ('select * from "x.csv" where a = "b.csv"', ["x.csv"]),
        ("FROM 'f/*.parquet' SELECT a, 'b'", ["f/*.parquet"]),
        ("TABLE 'x.csv'", ["x.csv"]),
        ("SELECT * FROM 'x.csv' AS x JOIN 'y.parquet' y ON x.a = 'b'", ["x.csv", "y.parquet"]),
        ("SELECT * FROM t LEFT SEMI JOIN 'y.csv' USING (a)", ["y.csv"]),
        ("SELECT * FROM 'a.csv' a, 'b.csv' b WHERE a.x IN ('c', 'd')", ["a.csv", "b.csv"]),
        ("SELECT * FROM t JOIN u ON t.a = 'x', 'b.csv'", ["b.csv"]),
        ("SELECT * FROM ('a.csv' JOIN ('b.csv' CROSS JOIN c))", ["a.csv", "b.csv"]),
        ("SELECT * FROM (SELECT 'a' FROM 'b.csv'), LATERAL (SELECT 'c')", ["b.csv"]),
        ("((SELECT 'a') UNION SELECT b FROM 'c.csv') UNION ALL TABLE 'd.csv'", ["c.csv", "d.csv"]),
        ("WITH w AS (SELECT 'a', 'b' FROM 'c.csv') SELECT 'd', 'e' FROM w", ["c.csv"]),
        ("SELECT (SELECT max(a) FROM 'b.csv'), 'c' FROM 'd.csv'", ["b.csv", "d.csv"]),
        ("SELECT a FROM t WHERE EXISTS (FROM 'b.csv')", ["b.csv"]),
        ("SELECT a FROM 'x.csv' GROUP BY a, 'b' ORDER BY a, 'c'", ["x.csv"]),
        ("FROM 'x.csv' |> SELECT a, 'b' |> JOIN 'y.csv' ON true", ["x.csv", "y.csv"]),
        ("SELECT 'it''s' FROM 'it''s.csv'", ["it's.csv"]),
        (r"SELECT 'a\' FROM \'b' FROM 'it\'s.csv'", ["it's.csv"]),
        ("SELECT a -- FROM 'b.csv'\nFROM /* 'c' /* FROM */ ' */ 'd.csv'", ["d.csv"]),
        ("SELECT `FROM` 'a' FROM `it's` JOIN 'b.csv'", ["b.csv"]),
        ("SELECT extract(YEAR FROM '2013-01-01'), trim(BOTH 'x' FROM 'xax')", []),
        ("SELECT substring('abc' FROM 2), a IS NOT DISTINCT FROM 'b', t.from, 'c'", []),
        ("SELECT * FROM explode(split('a,b', ',')), f('x.csv', 'y.csv')", []),
        ("SELECT * FROM VALUES ('a', 'b'), ('c', 'd') AS t(e, f)", []),
        ("SELECT * FROM t LATERAL VIEW explode(a) u AS b, c WHERE d = 'e'", []),
        ("SELECT date '2013-01-01', 'a' AS b, $$ FROM 'c' $$, r'FROM ''d'", []),
        ("SELECT 'a' WHERE b = 'c' AND d IN ('e', 'f')", []),
        ("SELECT 'a FROM 'b.csv", []),
    ],
)
def test_a_text_where_a_table_stands_is_a_file(sql: str, paths: list[str]) -> None:
    assert [text_in(token) for token in files_in(sql)] == paths


def test_one_file_is_one_table_however_often_it_is_named() -> None:
    query = with_files_as_tables(Query("SELECT * FROM 'x.csv' a JOIN 'x.csv' b"))
    assert query.tables == (TableSource("x.csv", "x.csv", in_query=True),)
    assert query.sql == "SELECT * FROM `x.csv` a JOIN `x.csv` b"


def test_names_differ_from_those_of_tables_and_of_each_other() -> None:
    given_table = TableSource("orders", "orders.csv")
    query = with_files_as_tables(Query("FROM 'orders', 'a.csv', 'A.csv', orders", (given_table,)))
    assert [(table.name, table.path) for table in query.tables] == [
        ("orders", "orders.csv"),
        ("./orders", "orders"),
        ("a.csv", "a.csv"),
        ("A.csv (2)", "A.csv"),
    ]
    assert query.sql == "FROM `./orders`, `a.csv`, `A.csv (2)`, orders"


def test_backticks_in_a_name_are_doubled() -> None:
    assert with_files_as_tables(Query("FROM 'a`b.csv'")).sql == "FROM `a``b.csv`"


@given(st.text(alphabet="'\"`-/*\\$ \n(),.rFROMa", max_size=40))
def test_any_text_has_tokens_that_stand_in_it(sql: str) -> None:
    place = 0
    for token in tokens(sql):
        assert token.start >= place
        assert sql[token.start : token.end] == token.source
        place = token.end
    list(files_in(sql))
