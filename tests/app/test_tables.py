"""Files as tables: named in the query, with any delimiter, with nanoseconds."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.conftest import Run

PLAIN = ("sql", "--plain")
FUNCTIONS = ("--udf=rules:third", "--udf=rules:odd:boolean")


def values(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()[2:]]


def test_a_file_stands_in_the_query_itself(run: Run) -> None:
    answer = run(
        "sql", *FUNCTIONS, "--limit=0", "SELECT id FROM 'rows.parquet' WHERE third(id) AND odd(id)"
    )
    assert answer.code == 0
    assert values(answer.out)[:3] == [["3"], ["9"], ["15"]]
    assert "2,000 rows in" in answer.err


def test_files_have_aliases_and_meet_tables_of_the_command_line(run: Run) -> None:
    query = """
        WITH l AS (SELECT * FROM 'lines.json')
        SELECT c.id, 'rows.csv' AS text FROM 'rows.csv' AS c
        JOIN l ON c.id = l.id JOIN 'array.json' a ON a.id = c.id JOIN 'rows.csv' d ON d.id = c.id
        JOIN r ON r.id = c.id
        WHERE d.text LIKE '%FROM%' OR 'lines.json' = 'lines.json'
        ORDER BY c.id
    """
    answer = run(*PLAIN, "--table=r=rows.parquet", query)
    assert answer.err == ""
    assert values(answer.out) == [["1", "rows.csv"], ["2", "rows.csv"]]


def test_a_pattern_and_a_folder_are_files_too(run: Run, tmp_path: Path) -> None:
    for number in range(3):
        frame = pd.DataFrame({"n": [number]})
        frame.to_parquet(tmp_path / f"{number}.parquet")
    for path in (f"{tmp_path}/*.parquet", str(tmp_path), f"file://{tmp_path}/*.parquet"):
        answer = run(*PLAIN, f"FROM '{path}' SELECT sum(n) AS s")
        assert (answer.err, values(answer.out)) == ("", [["3"]])


def test_a_query_with_files_is_explained(run: Run) -> None:
    query = "SELECT * FROM 'rows.parquet' WHERE third(id) AND odd(id)"
    answer = run("explain", *FUNCTIONS, "--sql", query)
    assert answer.code == 0
    assert "Would run in eddies" in answer.out


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("SELECT * FROM 'nowhere.csv'", "there is no file nowhere.csv"),
        ("SELECT * FROM 'no where/*.csv' n", "there is no file no where/*.csv"),
        ("SELECT * FROM 'notes.txt'", "notes.txt is of no kind that can be read"),
        ("SELECT * FROM 'not.json'", "something else than JSON objects"),
        ("SELECT * FROM 'empty.csv'", "empty.csv is empty, it has no columns"),
        ("SELECT * FROM rows.csv", "if it is a file, put it in quotes: FROM 'rows.csv'"),
        ("SELECT * FROM rows", "FROM 'rows.csv', or --table rows=rows.csv"),
        ("SELECT idd FROM 'rows.csv'", "Did you mean"),
        ("SELECT id FROM 'rows.csv' WHERE far(id)", "there is no function far"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_in_one_line(
    run: Run, query: str, complaint: str
) -> None:
    answer = run("sql", query)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("eddyline: error: ")
    assert not answer.err.startswith("eddyline: error: table")
    assert answer.err.count("\n") == 1
    assert complaint in answer.err


def test_errors_stand_in_the_column_where_the_user_wrote_them(run: Run) -> None:
    query = "SELECT 1 FROM 'rows.csv' WHERE idd > 1"
    assert f"column {query.index('idd') + 1})" in run("sql", query).err


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_found_out(run: Run, tmp_path: Path, delimiter: str) -> None:
    text = f'id{delimiter}text\n1{delimiter}"a;b,c|d{delimiter}""e"""\n'
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    for address in ("", "file://"):
        answer = run(*PLAIN, f"FROM '{address}{tmp_path}/t.csv' SELECT text, id + 1 AS next")
        assert answer.err == ""
        shown = delimiter.replace("\t", "\\t")
        assert answer.out.splitlines()[2].split() == [f'a;b,c|d{shown}"e"', "2"]


@pytest.mark.parametrize(
    "name", ["x [1].csv", "z{1,2}.csv", "back\\slash.csv", "a*b?.csv", "a#b%41.csv"]
)
def test_a_file_that_is_there_is_no_pattern(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("id\n1\n", encoding="utf-8")
    (tmp_path / "a*b2.csv").write_text("id\n7\n", encoding="utf-8")
    in_sql = f"{tmp_path}/{name}".replace("\\", "\\\\")
    answer = run(*PLAIN, f"FROM '{in_sql}' SELECT *")
    assert (answer.err, values(answer.out)) == ("", [["1"]])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("_x.csv", "has a name that begins with _ or ., and Spark leaves such files out"),
        (".x.csv", "has a name that begins with _ or ., and Spark leaves such files out"),
        ("a:b.csv", "Spark reads no file with a colon in its name"),
    ],
)
def test_names_that_spark_does_not_take(run: Run, tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / name).write_text("id\n1\n", encoding="utf-8")
    answer = run(*PLAIN, f"FROM '{tmp_path / name}' SELECT *")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert why in answer.err


def test_a_pattern_finds_folders_within_folders(run: Run, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "a" / str(number)).mkdir(parents=True)
        (tmp_path / "a" / str(number) / "t.csv").write_text(f"id\n{number}\n", encoding="utf-8")
    (tmp_path / "b:c.csv").write_text("id\n7\n", encoding="utf-8")  # beside what is looked for
    answer = run(*PLAIN, f"FROM '{tmp_path}/a/**/*.csv' SELECT * ORDER BY id")
    assert (answer.err, values(answer.out)) == ("", [["1"], ["2"]])


def test_lines_may_end_within_quotes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id,text\n1,"a\nb"\n2,c\n', encoding="utf-8")
    answer = run(*PLAIN, f"FROM '{tmp_path}/t.csv' SELECT *")
    assert (answer.err, values(answer.out)) == ("", [["1", "a\\nb"], ["2", "c"]])


def test_what_is_not_in_utf_8_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"id\n\xe9\n")
    answer = run(*PLAIN, "--table", f"t={tmp_path}/t.csv", "SELECT * FROM t")
    assert values(answer.out) == [["\ufffd"]]
    assert answer.err == (
        "t: t.csv is not in UTF-8: letters that are none there are read as \ufffd.\n"
    )


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        ("tsv", bytes),
        ("tsv.gz", gzip.compress),
        ("csv.gz", gzip.compress),
        ("TSV.bz2", bz2.compress),
    ],
)
def test_tables_with_tabs_can_be_packed(
    run: Run, tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / f"t.{ending}").write_bytes(pack(b"id\ttext\n1\ta, b\n"))
    answer = run(*PLAIN, f"FROM '{tmp_path}/t.{ending}' SELECT text, id")
    assert answer.err == ""
    assert values(answer.out) == [["a,", "b", "1"]]


def test_an_array_of_json_can_be_packed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'[\n{"id": 1},\n{"id": 2}]'))
    answer = run(*PLAIN, f"FROM '{tmp_path}/a.json.gz' SELECT sum(id) AS s")
    assert (answer.err, values(answer.out)) == ("", [["3"]])


@pytest.mark.parametrize("name", ["t.csv", "t.json", "t.tsv.gz"])
def test_a_binary_file_is_told_in_one_line(run: Run, tmp_path: Path, name: str) -> None:
    content = bytes(range(256)) * 10
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    answer = run("sql", f"FROM '{tmp_path}/{name}' SELECT *")
    kind = "json" if name == "t.json" else "csv"
    message = f"{tmp_path}/{name} cannot be read as {kind}: it is no text but binary"
    assert (answer.code, answer.err) == (2, f"eddyline: error: {message}\n")


MOMENTS = pd.Series(["2013-01-01 12:00:00.123456789", "1960-01-01 00:00:00.000000001", None])


def test_nanoseconds_of_pandas_become_timestamps(run: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [1, 2, 3],
            "a.b": pd.to_datetime(MOMENTS).astype("datetime64[ns]"),
            "z": pd.to_datetime(MOMENTS, utc=True).astype("datetime64[ns, UTC]"),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet", version="2.6")
    query = """
        SELECT id, typeof(`a.b`) AS x, typeof(z) AS y, string(`a.b`) AS a,
            string(to_utc_timestamp(z, current_timezone())) AS u
        FROM 't.parquet' WHERE third(id) IS NOT NULL AND odd(id) IS NOT NULL ORDER BY id
    """.replace("t.parquet", f"{tmp_path}/t.parquet")
    answer = run("sql", *FUNCTIONS, query)
    assert answer.code == 0
    first, second, third = values(answer.out)
    exact = ["2013-01-01", "12:00:00.123456"]
    assert first == ["1", "timestamp_ntz", "timestamp", *exact, *exact]
    before = ["1960-01-01", "00:00:00"]
    assert second[3:] == [*before, *before]
    assert third[3:] == ["NULL", "NULL"]
    assert "t.parquet: a.b, z: nanoseconds are cut to microseconds" in answer.err
    assert "3 rows in, 3 out" in answer.err


def test_nanoseconds_that_stay_numbers_are_told_in_one_line(run: Run, tmp_path: Path) -> None:
    moments = pa.array([1], pa.timestamp("ns"))
    nested = pa.StructArray.from_arrays([moments], ["at"])
    pq.write_table(pa.table({"s": nested}), tmp_path / "s.parquet")
    pq.write_table(pa.table({"at": moments}), tmp_path / "t.parquet")
    for path in (f"{tmp_path}/s.parquet", f"file://{tmp_path}/t.parquet"):
        answer = run("sql", f"FROM '{path}' SELECT *")
        assert answer.code == 2
        assert answer.err.count("\n") == 1
        assert 'write microseconds instead; in pandas: to_parquet(…, coerce_timestamps="us"' in (
            answer.err
        )
