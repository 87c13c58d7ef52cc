"""Finds the files that a query names in place of tables: ``SELECT * FROM 'trades.csv'``.

As in DuckDB, a text in quotes that stands where a table would is a file, a folder or a pattern.
Spark's SQL has no such thing, so each becomes a name in backticks, which a view gets. The name is
mostly as long as the text was, so that what follows stands in the column that Spark's errors name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from eddyline.app.invocation import Query, TableSource


class TokenKind(StrEnum):
    """The kinds of token; blanks and comments are not tokens."""

    TEXT = "text"  # in single or double quotes
    WORD = "word"  # a keyword or a name
    NAME = "name"  # in backticks
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and where it stands: ``sql[start:end]``."""

    kind: TokenKind
    source: str
    start: int

    @property
    def end(self) -> int:
        """The place after the token."""
        return self.start + len(self.source)


_TOKEN: Final = re.compile(
    r"""
    (?P<skipped> \s+ | --(?:\\\n|[^\r\n])* )
  | (?P<comment> /\* )
  | (?P<raw> r(?:'[^']*'|"[^"]*") )
  | (?P<text> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
  | (?P<name> `(?:[^`]|``)*` )
  | (?P<word> \w+ )
  | (?P<sign> \|> | . )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_COMMENT_SIGN: Final = re.compile(r"/\*|\*/")


def tokens(sql: str) -> Iterator[Token]:
    r"""Yield the tokens of a text, even of one that does not parse.

    >>> [token.source for token in tokens("SELECT 'it''s' -- it's\n /* /* ' */ */ FROM `a``b`")]
    ['SELECT', "'it''s'", 'FROM', '`a``b`']
    """
    place = 0
    while lexeme := _TOKEN.match(sql, place):
        place = lexeme.end()
        match lexeme.lastgroup:
            case "skipped":
                continue
            case "comment":
                place = _end_of_comment(sql, place)
            case "raw":
                yield Token(TokenKind.TEXT, lexeme[0], lexeme.start())
            case kind:
                yield Token(TokenKind(str(kind)), lexeme[0], lexeme.start())


def text_in(token: Token) -> str:
    r"""Return what a text in quotes says.

    >>> text_in(Token(TokenKind.TEXT, "'it''s \\'raw\\''", 0))
    "it's 'raw'"
    >>> text_in(Token(TokenKind.TEXT, r"r'a\b'", 0))
    'a\\b'
    """
    source = token.source
    if source[0] in "rR":
        return source[2:-1]
    if source[0] == "$":
        opening = source.index("$", 1) + 1
        return source[opening:-opening]
    quote = source[0]
    return re.sub(rf"\\(.)|{quote}{quote}", lambda found: found[1] or quote, source[1:-1])


def _end_of_comment(sql: str, place: int) -> int:
    """Return the place after a comment that was opened before; comments nest."""
    depth = 1
    while depth and (sign := _COMMENT_SIGN.search(sql, place)):
        depth += 1 if sign[0] == "/*" else -1
        place = sign.end()
    return len(sql) if depth else place


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
