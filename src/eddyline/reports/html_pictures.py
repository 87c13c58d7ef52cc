"""The pictures of the HTML report: the data of each chart, and what it says."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2s

from markupsafe import Markup

from eddyline.reports.block_report import BlockReport
from eddyline.reports.charts import Band, Bar, BarPart, Mark, bar_chart, column_chart, share_chart
from eddyline.reports.drawing import COLOURS
from eddyline.reports.figures import PAGE
from eddyline.reports.lane_chart import ChartLane, lane_chart
from eddyline.reports.quota_waits import QuotaWaits
from eddyline.reports.records import OTHER_ORDERS, Change, JoinRecord, Order
from eddyline.reports.timeline import Timeline
from eddyline.reports.wording import compact, percent, ratio, shortened

_WIDE = 900.0  # pixels of a picture on a screen
_NARROW = 360.0  # and on a telephone, where it would be too small to read
_ORDERS_HEIGHT = 340.0
_TEXT_MOST = 90  # letters of a text beside a bar, if there is room
_FEW_TASKS = 2  # whose rows need no picture


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart drawn twice: for a page that is wide enough, and for a narrow one."""

    title: str
    wide: Markup
    narrow: Markup

    @property
    def name(self) -> str:
        """What tells it from the other pictures of a page, for a style sheet."""
        contents = (self.wide + self.narrow).encode()
        return f"p{blake2s(contents, digest_size=6).hexdigest()}"


def orders_picture(
    block: BlockReport, line: Timeline, narrow: Timeline, changes: Sequence[Change]
) -> Picture:
    """Draw how the orders shared the rows over the run, with a mark at each change."""
    title = f"Order of the {'joins and ' * bool(block.inputs)}predicates over the run"
    return Picture(
        title,
        Markup(_orders_chart(title, block, line, changes, _WIDE)),  # noqa: S704 - as in _drawn
        Markup(_orders_chart(title, block, narrow, changes, _NARROW)),  # noqa: S704
    )


def _orders_chart(
    title: str, block: BlockReport, line: Timeline, changes: Sequence[Change], width: float
) -> str:
    total = sum(line.rows)
    bands = [
        Band(
            name=f"{PAGE.order(order, block.labels)} ({percent(rows, total)})",
            shares=shares,
            rest=order == OTHER_ORDERS,
            hint=_order_in_words(block, order),
        )
        for order, rows, shares in zip(line.orders, line.rows, line.shares, strict=True)
    ]
    at, edges, unit = _along(block, line)
    marks = [
        Mark(at(change.when), str(place), PAGE.change(change))
        for place, change in enumerate(changes, start=1)
    ]
    return share_chart(
        bands,
        edges,
        title,
        unit,
        "share of the rows",
        description="Shares of the rows by order: " + ", ".join(band.name for band in bands),
        marks=marks,
        width=width,
        height=_ORDERS_HEIGHT,
    )


def _along(
    block: BlockReport, line: Timeline
) -> tuple[Callable[[float], float], Sequence[float], str]:
    """Return where a moment lies on the axis, its bins, and what it shows.

    That is time, and for a join rows: these come in bursts, between which SteMs are built.
    """
    if block.inputs:
        return line.rows_at, line.row_edges, "rows, in order of arrival"
    factor, unit = _clock(line.seconds)
    edges = [edge * factor for edge in line.edges]
    return lambda when: line.busy.at(when) * factor, edges, f"{unit} of work"


def calls_picture(block: BlockReport) -> Picture:
    """Draw how many rows each predicate was evaluated on, and how many it was spared."""
    bars = []
    for row in block.numbered():
        seen = row.record.rows_in
        spared = row.within - seen
        bars.append(
            Bar(
                label=f"{row.number}: {shortened(row.text, _TEXT_MOST)}",
                values=(seen, spared),
                note=f"{percent(spared, row.within)} spared" if seen else "never reached",
                hint=f"{row.number}: {row.text}",
            )
        )
    return _drawn(
        "Rows seen by each predicate",
        lambda title, width: bar_chart(
            bars,
            [BarPart("seen"), BarPart("spared", rest=True)],
            title,
            "rows",
            width=width,
        ),
    )


def join_pictures(block: BlockReport, join: JoinRecord) -> Iterator[Picture]:
    """Draw what only join blocks have: their steps, and how even their tasks were."""
    yield _steps_picture(block)
    if len(join.cells) > _FEW_TASKS:
        yield _skew_picture(join)


def _steps_picture(block: BlockReport) -> Picture:
    """Draw how many tuples came to each step of a join block, and how many went on."""
    bars = []
    for step in block.steps():
        label = step.text if step.label in step.text.split() else f"{step.label}: {step.text}"
        bars.append(
            Bar(
                label=shortened(label, _TEXT_MOST),
                values=(step.came, step.went),
                note=f"{ratio(step.went / step.came)} per tuple" if step.came else "none arrived",
                hint=f"{label}: {compact(step.came)} in, {compact(step.went)} out",
            )
        )
    return _drawn(
        "Tuples at each step",
        lambda title, width: bar_chart(
            bars,
            [BarPart("tuples in"), BarPart("tuples out, or matches")],
            title,
            "tuples",
            stacked=False,
            width=width,
        ),
    )


def _skew_picture(join: JoinRecord) -> Picture:
    """Draw how many rows came to each task."""
    said = f"The largest task had {ratio(join.skew)} times the rows of the median one."
    return _drawn(
        "Rows of each task",
        lambda title, width: column_chart(
            join.cells,
            title,
            "tasks, largest first",
            "rows",
            description=said,
            width=width,
        ),
    )


def waits_picture(waits: QuotaWaits) -> Picture:
    """Draw when tables and functions waited for quota."""
    factor, unit = _clock(waits.end - waits.start)
    lanes = [
        ChartLane(
            label=name,
            stretches=tuple(
                ((began - waits.start) * factor, (ended - waits.start) * factor)
                for began, ended in stretches
            ),
            note=f"{PAGE.time(seconds)} waited",
            hint=f"{name} waited for quota, {unit}",
        )
        for name, stretches, seconds in zip(
            waits.names, waits.stretches, waits.seconds, strict=True
        )
    ]
    end = (waits.end - waits.start) * factor
    title = "When nobody was let through"
    return _drawn(title, lambda title, width: lane_chart(lanes, end, title, unit, width=width))


def _drawn(title: str, draw: Callable[[str, float], str]) -> Picture:
    """Draw a chart in both widths; ``draw`` has escaped every text in it."""
    wide, narrow = Markup(draw(title, _WIDE)), Markup(draw(title, _NARROW))  # noqa: S704
    return Picture(title, wide, narrow)


def _order_in_words(block: BlockReport, order: Order) -> str:
    if order == OTHER_ORDERS:
        return "all rarer orders"
    labels = block.labels
    return "; then ".join(
        f"{labels[position]}: {shortened(block.text_of(position), _TEXT_MOST)}"
        for position in order
    )


def _clock(seconds: float) -> tuple[float, str]:
    """Return the best unit for a run of this length, as a factor and a name."""
    units = ((7200, 1 / 3600, "hours"), (120, 1 / 60, "minutes"), (1, 1.0, "seconds"))
    for least, factor, name in units:
        if seconds >= least:
            return factor, name
    return 1000.0, "milliseconds"


def data_uri(svg: str) -> str:
    """Return an ``<svg>`` element as the address of an image, for notebooks.

    A notebook that its reader has not run is not trusted: Jupyter, and the pages that show
    notebooks, take SVG elements out of it and leave their texts. They leave images. Its colours are
    those of a light or a dark page, as set by the element that shows it.
    """
    head, end, body = svg.partition(">")
    image = f"{head}{end}<style>{_IMAGE_STYLE}</style>{body}"
    return "data:image/svg+xml;base64," + b64encode(image.encode()).decode("ascii")


def _image_style() -> str:
    chosen = ((name, f"light-dark({light},{dark})") for name, (light, dark) in COLOURS.items())
    rules = (f".f-{name}{{fill:{value}}}.s-{name}{{stroke:{value}}}" for name, value in chosen)
    edge = "light-dark({},{})".format(*COLOURS["paper"])
    return f"svg{{color-scheme:light dark}}{''.join(rules)}.edge{{stroke:{edge}}}"


_IMAGE_STYLE = _image_style()
