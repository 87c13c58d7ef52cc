"""Which job runs which queries: one for each set of streams and partitioning key."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.spark.blocks.standing import QueryTemplate


@dataclass(frozen=True, slots=True)
class Job:
    """A job: the streams that it reads, and whether its queries join them.

    If so, ``columns`` has for each stream the column that its rows are dealt out by; none where
    no column of every stream must be equal, so that all rows meet in one place.
    """

    streams: tuple[str, ...]
    joins: bool = False
    columns: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """A name, which is one of a directory as well."""
        if not self.joins:
            return f"select {self.streams[0]}"
        if not self.columns:
            return f"join {' '.join(self.streams)}"
        pairs = zip(self.streams, self.columns, strict=True)
        return "join " + " ".join(f"{stream}.{column}" for stream, column in pairs)


def job_of(template: QueryTemplate) -> Job:
    """Return the job that runs the queries of a template."""
    if len(template.inputs) == 1:
        return Job(template.inputs)
    everything = set(range(len(template.inputs)))
    for together in sorted(template.query.shape.classes, key=sorted):
        if {place.relation for place in together} != everything:
            continue
        by_stream: dict[str, set[int]] = {}
        for place in together:
            by_stream.setdefault(template.inputs[place.relation], set()).add(place.column)
        # A row is dealt out once, whichever of its stream's inputs it is for.
        if all(len(columns) == 1 for columns in by_stream.values()):
            streams = tuple(sorted(by_stream))
            return Job(streams, True, tuple(min(by_stream[stream]) for stream in streams))  # noqa: FBT003 - a field
    return Job(tuple(sorted(set(template.inputs))), joins=True)
