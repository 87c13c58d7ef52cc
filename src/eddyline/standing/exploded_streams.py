"""Exploded streams: ``explode`` and the like, as streams of their own.

``SELECT id, tag FROM events LATERAL VIEW explode(tags) AS tag`` selects from a stream that has a
row for each tag of an event: that of ``events`` with a generator of Spark's over it. What is asked
of it stands as of any other stream, and queries that say the same share it: see
``docs/decisions/0089-explode-makes-a-stream.md``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import StructType

from eddyline import catalyst
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.read.chains import Tree, read_link
from eddyline.planner.read.definitions import Definitions
from eddyline.planner.read.throwing import may_throw
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.standing.described_outputs import canonical, shown_name, unsaid
from eddyline.standing.query_template import ExplodedStream
from eddyline.standing.shown_parameters import attributes_in

_NEVER_RAISING: Final = frozenset({"Explode", "Inline", "JsonTuple", "PosExplode", "Stack"})
"""Generators that raise no errors of their own."""

_READY: Final = "make the rows that are meant in the stream's own DataFrame"


@dataclass(frozen=True)
class ExplodedSource:
    """An exploded stream in the JVM: its generator, over attributes that are columns of a stream.

    ``columns`` are these attributes with the numbers of the stream's columns that they are.
    """

    stream: ExplodedStream
    generate: Plan
    generator: CatalystExpression
    columns: tuple[tuple[CatalystExpression, int], ...]


class ExplodedStreams:
    """The exploded streams of a state directory; the holder of it sees that one thread asks."""

    def __init__(self, schemas: Mapping[str, StructType]) -> None:
        """Take the columns of each stream."""
        self._schemas = schemas
        self.schemas: dict[str, StructType] = {}
        """The columns of each: those of its stream, and after them what is generated."""
        self.streams: dict[str, ExplodedStream] = {}
        self._sources: dict[str, ExplodedSource] = {}

    def take(self, stream: ExplodedStream) -> None:
        """Take one that queries of the state directory read."""
        if stream.name not in self.streams:
            self.streams[stream.name] = stream
            generated = StructType.fromJson(json.loads(stream.generated_schema))
            fields = [*self._schemas[stream.stream].fields, *generated.fields]
            self.schemas[stream.name] = StructType(fields)

    def source(self, name: str) -> ExplodedSource | None:
        """Return how one is made; None where that was not read in this session."""
        return self._sources.get(name)

    def read(self, plan: Plan, table_of: Callable[[Plan], str | None]) -> tuple[str, Plan]:
        """Return the name of what a ``Generate`` makes of a stream, and the leaf that this is.

        DeclinedError where it cannot be a stream of its own.
        """
        links = []
        node = catalyst.children(plan)[0]
        while (table := table_of(node)) is None:
            link, deterministic = read_link(node)
            if link is None or not deterministic:
                raise not_understood(f"explode of anything but one stream's columns: {_READY}")
            links.append(link)
            node = catalyst.children(node)[0]
        definitions = Definitions({})
        for link in reversed(links):
            definitions.define(link, guarded=False)
        generator = Tree.of(catalyst.generator(plan))
        shown = shown_name(catalyst.pretty(generator.handle))
        if definitions.results_in(generator):
            raise not_understood(f"{shown} with a Python function or a :marker in it: {_READY}")
        base = definitions.tree_over_base(generator)
        if base.name not in _NEVER_RAISING or any(map(may_throw, base.children)):
            raise not_understood(f"{shown}, which may raise an error: {_READY}")
        if not catalyst.is_deterministic(base.handle):
            raise not_understood(f"{shown}, which gives others each time: {_READY}")
        places = {number: at for at, number in enumerate(catalyst.output_numbers(node))}
        attributes = {one.identity[0]: one.handle for one in attributes_in(base)}
        columns = {number: str(places[number]) for number in attributes}
        outer = bool(catalyst.is_outer_generate(plan))
        whole = _IDENTITY.sub("", catalyst.whole_text(base.handle))
        said = f"{table} {outer} {canonical(base.node, columns)} {unsaid(base)} {whole}"
        name = f"{table}+{hashlib.sha256(said.encode()).hexdigest()[:12]}"
        stream = ExplodedStream(name, table, shown, self._named_apart(plan, table))
        self.take(stream)
        pairs = tuple((attributes[number], places[number]) for number in attributes)
        self._sources.setdefault(name, ExplodedSource(stream, plan, base.handle, pairs))
        return name, node

    def _named_apart(self, plan: Plan, table: str) -> str:
        """Return the columns that a ``Generate`` adds, under names that the stream has not."""
        schema = json.loads(catalyst.generated_schema(plan))
        known = {field.name.casefold() for field in self._schemas[table].fields}
        for column in schema["fields"]:
            while column["name"].casefold() in known:
                column["name"] += "_exploded"
            known.add(column["name"].casefold())
            column["nullable"] = True
        return json.dumps(schema)


_IDENTITY: Final = re.compile(r"#\d+L?")
"""What Spark's text of an expression says of identities, which differ from reading to reading."""


def exploded(rows: ClassicDataFrame, source: ExplodedSource) -> ClassicDataFrame:
    """Return the rows of a stream with what is generated of each."""
    plan = catalyst.analyzed_plan(rows)
    attributes = list(catalyst.outputs(plan))
    aliases = [
        catalyst.attribute_like(attribute, attributes[place]) for attribute, place in source.columns
    ]
    below = catalyst.projected([*attributes, *aliases], plan)
    names = [column["name"] for column in json.loads(source.stream.generated_schema)["fields"]]
    made, generated = catalyst.generate_again(source.generate, source.generator, below)
    named = [catalyst.named(value, name) for value, name in zip(generated, names, strict=True)]
    return catalyst.dataframe_over(
        rows.sparkSession, catalyst.projected([*attributes, *named], made)
    )
