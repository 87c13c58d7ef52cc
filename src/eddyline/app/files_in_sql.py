"""Finds the files that a query names in place of tables: ``SELECT * FROM 'trades.csv'``.

As in DuckDB, a text in quotes that stands where a table would is a file, a folder or a pattern.
Spark's SQL has no such thing, so each becomes a name in backticks, which a view gets. The name is
mostly as long as the text was, so that what follows stands in the column that Spark's errors name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from eddyline.app.invocation import Query, TableSource
from eddyline.app.sql_tokens import Token, TokenKind, text_in, tokens

# What a query begins with, in parentheses too. Elsewhere in these FROM belongs to a function:
# extract(YEAR FROM '2013-01-01').
_BEGIN_QUERY: Final = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES"})

# After these the commas of a FROM clause are over.
_END_FROM: Final = frozenset(
    {
        *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"),
        *("WINDOW", "QUALIFY", "SELECT", "UNION", "INTERSECT", "EXCEPT", "MINUS", "VALUES", "|>"),
    }
)


def with_files_as_tables(query: Query) -> Query:
    """Return a query whose files are among its tables and named in its SQL like these.

    >>> with_files_as_tables(Query("SELECT 'a' FROM 'b.csv' AS b, 'c.csv'")).sql
    "SELECT 'a' FROM `b.csv` AS b, `c.csv`"
    """
    names: dict[str, str] = {}
    taken = {table.name.lower() for table in query.tables}
    parts = []
    done = 0
    for token in files_in(query.sql):
        path = text_in(token)
        if path not in names:
            names[path] = _free_name(path, taken)
            taken.add(names[path].lower())
        parts += [query.sql[done : token.start], f"`{names[path].replace('`', '``')}`"]
        done = token.end
    files = tuple(TableSource(name, path, in_query=True) for path, name in names.items())
    sql = "".join(parts) + query.sql[done:]
    return Query(sql, query.tables + files, query.functions)


def files_in(sql: str) -> Iterator[Token]:
    """Yield the texts that stand where a table would."""
    scopes = [_Scope(is_query=True)]
    before = ""
    for token in tokens(sql):
        scope = scopes[-1]
        word = token.source.upper() if token.kind in {TokenKind.WORD, TokenKind.SIGN} else ""
        if word == "(":
            scopes.append(_Scope(awaits_table=scope.awaits_table))
            scope.awaits_table = False
        elif word == ")":
            if len(scopes) > 1:
                scopes.pop()
        elif token.kind is TokenKind.TEXT and (scope.awaits_table or before == "TABLE"):
            yield token
            scope.awaits_table = False
        else:
            scope.read(word, before)
        before = word


@dataclass(slots=True)
class _Scope:
    """What is known of a query, or of a part in parentheses, after some of its tokens."""

    is_query: bool = False
    awaits_table: bool = False
    in_from: bool = False
    begun: bool = False

    def read(self, word: str, before: str) -> None:
        """Take the next token: a keyword or a sign, empty if it is something else."""
        if before == ".":  # the name of a column, whatever it is
            word = ""
        if word == "SELECT" or (word in _BEGIN_QUERY and not self.begun):
            self.is_query = True
        self.begun = True
        from_begins = word == "FROM" and self.is_query and before != "DISTINCT"  # IS DISTINCT FROM
        self.awaits_table = (
            from_begins
            or word == "JOIN"
            or (word == "," and self.in_from)
            or (word == "LATERAL" and self.awaits_table)
        )
        self.in_from = from_begins or (self.in_from and word not in _END_FROM)


def _free_name(path: str, taken: Collection[str]) -> str:
    """Return a name for a file that no table has and that cannot occur within the query."""
    name = f"./{path}" if re.fullmatch(r"\w+", path) else path
    number = 2
    while name.lower() in taken:
        name = f"{path} ({number})"
        number += 1
    return name
