"""Sequences: ``a FOLLOWED BY b ON … WITHIN 10 MINUTES`` in a FROM clause, as joins.

The clause is found by tokens and written as joins with conditions on event times, before Spark
parses the query; all else of it stays as it was, letter by letter::

    sequence: FROM relation step [step ...]
    step:     FOLLOWED BY [FIRST] relation [ON condition] [window ...]
              NOT FOLLOWED BY relation [ON condition] window     (the last one)
    relation: stream [[AS] alias]
    window:   WITHIN duration [OF alias]
    duration: [INTERVAL] value unit [value unit ...]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import StructType

from eddyline.errors import NotShareableError
from eddyline.standing.sql_tokens import SqlToken, sql_tokens
from eddyline.standing.time_bounds import event_time

_UNITS: Final = {
    unit + plural: unit
    for unit in ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
    for plural in ("", "S")
}

_ENDS: Final = frozenset(
    [
        "ANTI",
        "CLUSTER",
        "CROSS",
        "DISTRIBUTE",
        "EXCEPT",
        "FROM",
        "FULL",
        "GROUP",
        "HAVING",
        "INNER",
        "INTERSECT",
        "JOIN",
        "LATERAL",
        "LEFT",
        "LIMIT",
        "MINUS",
        "NATURAL",
        "OFFSET",
        "ORDER",
        "PIVOT",
        "RIGHT",
        "SELECT",
        "SORT",
        "TABLESAMPLE",
        "UNION",
        "UNPIVOT",
        "WHERE",
        "WINDOW",
        "WITHIN",
        ";",
        ")",
    ]
)
"""What ends a condition, where it stands in no parentheses."""

_NO_ALIASES: Final = _ENDS | {"FOLLOWED", "NOT", "ON", "OF", "USING", ","}

_EARLIER: Final = "eddyline_earlier"
"""The alias of what would have followed before the first."""

_EXCERPT: Final = 80
"""Characters of a clause that an error shows."""


@dataclass(frozen=True, slots=True)
class _Relation:
    """A stream as a sequence names it; ``time`` is its event time as an expression."""

    written: str
    alias: str
    time: str


@dataclass(frozen=True, slots=True)
class _Window:
    """No later than ``duration`` after the event of the relation of that number, or the last."""

    duration: str
    of: int | None


@dataclass(frozen=True, slots=True)
class _Step:
    relation: _Relation
    absent: bool
    first: bool
    condition: Sequence[SqlToken]
    windows: Sequence[_Window]
    start: int


def markers_within(sql: str) -> frozenset[str]:
    """Return the names of the markers in the durations of sequences: their values are written in.

    >>> sorted(markers_within("… FROM a FOLLOWED BY a b ON b.id = :id WITHIN :most MINUTES"))
    ['most']
    """
    tokens = list(sql_tokens(sql))
    if not any(map(_followed_by, _pairs(tokens))):
        return frozenset()
    names = set()
    for place, token in enumerate(tokens):
        if token.word == "WITHIN":
            for sign, name in _pairs(tokens[place + 1 :]):
                if sign.word in _UNITS:
                    break
                if sign.text == ":" and name is not None and name.name is not None:
                    names.add(name.name)
    return frozenset(names)


def with_joins(sql: str, schemas: Mapping[str, StructType]) -> str:
    """Return a query with joins in the place of its sequences; one without any as it is.

    ``schemas`` are those of the streams, which say what their event times are. Takes time in
    proportion to the text. NotShareableError, with the clause, for a sequence that is none.
    """
    if "followed" not in sql.lower():
        return sql
    tokens = list(sql_tokens(sql))
    parts, done, place = [], 0, 0
    while place < len(tokens):
        if tokens[place].word == "FROM" and _begins(tokens, place + 1):
            reader = _SequenceReader(sql, tokens, place + 1, schemas)
            start = tokens[place + 1].start
            parts += [sql[done:start], reader.joins()]
            place = reader.place
            done = tokens[place - 1].end
            continue
        if _followed_by((tokens[place], tokens[place + 1] if place + 1 < len(tokens) else None)):
            raise NotShareableError(
                "FOLLOWED BY comes after FROM and a stream, before any other join: "
                f"{_excerpt(sql, tokens[place].start)}"
            )
        place += 1
    return "".join([*parts, sql[done:]])


def _pairs(tokens: Sequence[SqlToken]) -> Iterator[tuple[SqlToken, SqlToken | None]]:
    """Yield each token with the one after it."""
    return zip(tokens, [*tokens[1:], None], strict=False)


def _followed_by(pair: tuple[SqlToken, SqlToken | None]) -> bool:
    one, other = pair
    return one.word == "FOLLOWED" and other is not None and other.word == "BY"


def _begins(tokens: Sequence[SqlToken], place: int) -> bool:
    """Tell whether a relation and a step stand at a place: a name or two, AS, and NOT."""
    for at in range(place + 1, min(place + 5, len(tokens) - 1)):
        if _followed_by((tokens[at], tokens[at + 1])):
            return True
        if tokens[at].name is None and tokens[at].text != ".":
            return False
        if tokens[at].word in _ENDS:
            return False
    return False


def _excerpt(sql: str, start: int) -> str:
    text = " ".join(sql[start:].split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


class _SequenceReader:
    """Reads one sequence, from its first relation on; ``place`` is then after its last token."""

    def __init__(
        self,
        sql: str,
        tokens: Sequence[SqlToken],
        place: int,
        schemas: Mapping[str, StructType],
    ) -> None:
        self.place = place
        self._sql = sql
        self._tokens = tokens
        self._schemas = {name.lower(): schema for name, schema in schemas.items()}
        self._relations: list[_Relation] = []
        self._steps: list[_Step] = []

    def joins(self) -> str:
        """Return the sequence as a relation that is joined with others."""
        first = self.place
        self._relations.append(self._relation())
        while self._at("FOLLOWED") or (self._at("NOT") and self._word(1) == "FOLLOWED"):
            step = self._step()
            self._steps.append(step)
        self._check_windows()
        self._check_absent(first)
        return " ".join([self._relations[0].written, *self._written()])

    def _written(self) -> Iterator[str]:
        for number, step in enumerate(self._steps, 1):
            before, own = self._relations[number - 1], step.relation
            windows = [
                f"{own.time} <= {self._relations[number - 1 if w.of is None else w.of].time}"
                f" + {w.duration}"
                for w in step.windows
            ]
            asked = self._condition(step, None)
            terms = [*asked, f"{own.time} > {before.time}", *windows]
            kind = "LEFT ANTI JOIN" if step.absent else "JOIN"
            yield f"{kind} {own.written} ON {' AND '.join(terms)}"
            if step.first:
                name = own.written.removesuffix(own.alias).rstrip()
                earlier = own.time.replace(own.alias, _EARLIER, 1)
                asked = self._condition(step, _EARLIER)
                terms = [*asked, f"{earlier} > {before.time}", f"{earlier} < {own.time}"]
                yield f"LEFT ANTI JOIN {name} {_EARLIER} ON {' AND '.join(terms)}"

    def _condition(self, step: _Step, alias: str | None) -> list[str]:
        """Return what a step asks, in parentheses, of an event under another alias or its own."""
        if not step.condition:
            return []
        text, done = "", step.condition[0].start
        for token, after in _pairs(step.condition):
            if alias is not None and after is not None and after.text == ".":
                own = token.name
                if own is not None and own.lower() == _plain(step.relation.alias).lower():
                    text += self._sql[done : token.start] + alias
                    done = token.end
        return [f"({text}{self._sql[done : step.condition[-1].end]})"]

    def _step(self) -> _Step:
        start = self._token.start
        absent = self._taken("NOT")
        self._expect("FOLLOWED")
        self._expect("BY")
        if self._steps and self._steps[-1].absent:
            raise self._refused("nothing comes after NOT FOLLOWED BY in a sequence", start)
        if self._steps and self._steps[-1].first:
            raise self._refused("nothing comes after FOLLOWED BY FIRST in a sequence", start)
        named = self._tokens[self.place + 1] if self.place + 1 < len(self._tokens) else None
        first = (
            self._at("FIRST") and named is not None and (named.name or "").lower() in self._schemas
        )
        if first:
            self.place += 1
            if absent:
                raise self._refused("FIRST is of what follows: take it out after NOT", start)
        relation = self._relation()
        names = {_plain(known.alias).lower() for known in self._relations}
        if _plain(relation.alias).lower() in names:
            raise self._refused(
                f"two events of a sequence are called {relation.alias}: give each an alias of its "
                "own",
                start,
            )
        condition: list[SqlToken] = []
        if self._taken("ON"):
            condition = self._read_condition()
            if not condition:
                raise self._refused("there is no condition after ON", start)
        windows = []
        while self._taken("WITHIN"):
            windows.append(self._window(start))
        self._relations.append(relation)
        return _Step(relation, absent, first, condition, windows, start)

    def _relation(self) -> _Relation:
        token = self._token
        schema = self._schemas.get((token.name or "").lower())
        if schema is None:
            raise self._refused(f"{token.text} is no stream, and a sequence is of streams")
        column = event_time(schema)
        if column is None:
            raise self._refused(
                f"{token.text} has no event time, which says what follows what: make the stream "
                "with withWatermark(time, delay)"
            )
        self.place += 1
        self._taken("AS")
        written = alias = token.text
        here = self._token if self.place < len(self._tokens) else None
        if here is not None and here.name is not None and here.word not in _NO_ALIASES:
            alias = here.text
            written = f"{token.text} {alias}"
            self.place += 1
        time = schema.fields[column].name.replace("`", "``")
        return _Relation(written, alias, f"{alias}.`{time}`")

    def _read_condition(self) -> list[SqlToken]:
        """Take the tokens up to what ends a condition."""
        start, depth = self.place, 0
        while self.place < len(self._tokens):
            token = self._token
            if not depth and (
                token.word in _ENDS
                or (token.word == "FOLLOWED" and self._word(1) == "BY")
                or (token.word == "NOT" and self._word(1) == "FOLLOWED" and self._word(2) == "BY")
            ):
                break
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            self.place += 1
        return list(self._tokens[start : self.place])

    def _window(self, start: int) -> _Window:
        duration = self._duration(start)
        if not self._taken("OF"):
            return _Window(duration, None)
        alias = self._token.name if self.place < len(self._tokens) else None
        names = [_plain(known.alias).lower() for known in self._relations]
        if alias is None or alias.lower() not in names:
            raise self._refused(f"OF names an earlier event of the sequence: {', '.join(names)}")
        self.place += 1
        return _Window(duration, names.index(alias.lower()))

    def _duration(self, start: int) -> str:
        """Take values with units; return their sum, of which Spark makes a constant interval."""
        self._taken("INTERVAL")
        parts: list[str] = []
        while self.place < len(self._tokens):
            begin, depth = self.place, 0
            while self.place < len(self._tokens) and (depth or self._word(0) not in _UNITS):
                if not depth and self._token.word in _ENDS | {"OF", "ON", "FOLLOWED"}:
                    break
                depth += {"(": 1, ")": -1}.get(self._token.text, 0)
                self.place += 1
            unit = _UNITS.get(self._word(0))
            if unit is None or self.place == begin:
                self.place = begin
                break
            first, last = self._tokens[begin], self._tokens[self.place - 1]
            value = self._sql[first.start : last.end]
            if last is first and first.text.startswith("'"):
                value = first.text[1:-1].strip()
            parts.append(f"({value}) * INTERVAL 1 {unit}")
            self.place += 1
            if self.place < len(self._tokens) and not self._begins_value():
                break
        if not parts:
            raise self._refused(
                "WITHIN takes an interval, as in WITHIN 10 MINUTES or WITHIN 1 HOUR 30 MINUTES",
                start,
            )
        return f"({' + '.join(parts)})"

    def _begins_value(self) -> bool:
        token = self._token
        return token.text[0].isdigit() or token.text[0] in "':(" or token.word == "CAST"

    def _check_windows(self) -> None:
        """Raise NotShareableError where nothing says how long an event is waited for."""
        for number, step in enumerate(self._steps, 1):
            later = self._steps[number - 1 :] if not step.absent else []
            bounded = any(
                window.of is not None and window.of < number
                for other in later
                for window in other.windows
            )
            if not step.windows and not bounded:
                raise self._refused(
                    f"nothing says for how long {step.relation.alias} is waited for: end the step "
                    "with WITHIN, as in WITHIN 10 MINUTES, or the last one with WITHIN 1 HOUR OF "
                    f"{self._relations[0].alias}",
                    step.start,
                )

    def _check_absent(self, first: int) -> None:
        """Raise NotShareableError where a query asks what has not come for a value."""
        if not self._steps[-1].absent:
            return
        alias = _plain(self._relations[-1].alias).lower()
        outside = [*self._tokens[:first], *self._tokens[self.place :]]
        for token, after in _pairs(outside):
            if (token.name or "").lower() == alias and after is not None and after.text == ".":
                raise self._refused(
                    f"{alias} has no values outside of its ON, as it is what did not come: ask "
                    "about it in ON, which says what counts as following",
                    self._steps[-1].start,
                )

    @property
    def _token(self) -> SqlToken:
        if self.place >= len(self._tokens):
            raise NotShareableError(f"the query ends within a sequence: {self._sql}")
        return self._tokens[self.place]

    def _word(self, ahead: int) -> str:
        place = self.place + ahead
        return self._tokens[place].word if place < len(self._tokens) else ""

    def _at(self, word: str) -> bool:
        return self._word(0) == word

    def _taken(self, word: str) -> bool:
        """Go on where a word stands here; tell whether it did."""
        if self._at(word):
            self.place += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._taken(word):
            raise self._refused(f"{word} is expected")

    def _refused(self, why: str, start: int | None = None) -> NotShareableError:
        if start is None:
            start = self._token.start if self.place < len(self._tokens) else len(self._sql)
        return NotShareableError(f"{why}: {_excerpt(self._sql, start)}")


def _plain(alias: str) -> str:
    """Return an alias without quotes."""
    return alias[1:-1].replace("``", "`") if alias.startswith("`") else alias
