"""What the user asks for after an action: how every block of a query was routed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from rich.console import Console

from eddyline.cascades.calibration import Calibration
from eddyline.reports.as_dict import as_dict
from eddyline.reports.block_report import BlockReport
from eddyline.reports.driver_records import AskedTable, CalledFunction
from eddyline.reports.sections import ReportSections, report_sections
from eddyline.reports.text import ReportText, plain

_PRINTED_WIDTH = 100  # columns, where nothing says how wide the terminal is


@dataclass(frozen=True, slots=True, repr=False)
class RoutingReport:
    """How the blocks of a query ran, and what was left to Spark.

    ``blocks`` stand in the order of the query. ``left`` holds, for every part
    that does not run in an eddy, what it is and why. ``called`` are the concurrent functions,
    whose calls the driver has made, with what they cost, ``asked`` the lookup tables, ``cascades``
    the thresholds that ``adapt`` has set. Printing the report, or showing it at a prompt, gives
    text; showing it at the end of a notebook cell gives pictures.
    """

    blocks: tuple[BlockReport, ...]
    left: tuple[tuple[str, str], ...] = ()
    called: tuple[CalledFunction, ...] = ()
    asked: tuple[AskedTable, ...] = ()
    cascades: tuple[Calibration, ...] = ()

    def __str__(self) -> str:
        """The report as plain text, as wide as the terminal."""
        width = get_terminal_size((_PRINTED_WIDTH, 24)).columns
        return plain(self._sections(), width)

    def __repr__(self) -> str:
        """What a prompt shows: the text."""
        return str(self)

    def __rich__(self) -> ReportText:
        """What rich prints for this report."""
        return ReportText(self._sections())

    def _repr_html_(self) -> str:
        """What a notebook shows for this report."""
        from eddyline.reports.html import fragment  # noqa: PLC0415 - only pages need jinja2

        return fragment(self._sections())

    def show(self) -> None:
        """Print the report, in colours if standard output is a terminal."""
        Console().print(self)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the report as one self-contained web page and return its path.

        The page loads nothing from elsewhere. An existing file is overwritten;
        OSError is raised if the file cannot be written.
        """
        from eddyline.reports.html import page  # noqa: PLC0415 - only pages need jinja2

        target = Path(path)
        target.write_text(page(self._sections()), encoding="utf-8")
        return target

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that ``json.dumps`` takes.

        ``format``: version of these keys, now 1. ``left``: a list of ``what``
        and ``why``. ``blocks``: for each block ``title``, ``policy``, ``seed``
        (null where none was set), ``reduced`` (whether rows were dropped before they came to
        it), ``predicates`` (texts), ``inputs`` and ``layout``
        (see below), ``measured`` and ``run``, which is
        null until an action has run. Times are in seconds, moments in seconds
        since the epoch; an order is a list of positions in ``predicates``,
        counted from 0, and the empty list stands for all rarer orders.
        ``compared`` with plain Spark, null where no function could be called: ``calls`` made,
        ``plain_calls``, ``seconds_less`` (at the mean cost of the calls made), and whether
        some calls of plain Spark are ``estimated`` or only known to be at ``least`` as many.
        ``called``: for each concurrent function ``name``, distinct ``values``, ``calls``,
        ``failures``, ``seconds``, ``spent`` and ``unit``, further values that a ledger had
        (``kept``) and what they had cost (``saved``), the most values ``together`` in a call, calls
        refused for quota (``refusals``), the seconds in which none was let through for that
        (``waited``), when that was (``waits``, each as beginning and end), and the ``tokens`` of
        answers. ``asked``: for each way into a lookup table ``name``, distinct ``keys``,
        ``requests``, ``failures``, ``at_a_time`` (the most requests at once), rows ``unmatched``
        (that came with a key which their call had not asked for) and ``by_source``: for each
        ``source`` its ``keys``; ``kept`` are further keys whose rows a ledger had, ``together`` is
        the most keys in a request; ``refusals``, ``waited`` and ``waits`` as above; ``choice`` says
        whether a table that can be scanned as well was, and why; the requests have cost what was
        ``spent``, in ``unit`` (empty where no price is known). ``cascades``:
        for each cascade ``name``, its targets ``recall`` and ``precision`` (null where there is
        none) and ``delta``, the thresholds ``low`` and ``high`` (null where the proxy drops or
        accepts nothing, or, as ``accepts_all`` says, accepts every score), about how many ``rows``
        there were to draw from, the ``labels`` asked for, how many of these were ``accepted``, and
        the share ``spared`` that the thresholds decide. ``advice``: sentences that say what may
        help, for people.

        In a join block ``predicates`` ends with the joins, one for each of the
        ``inputs``, and ``layout`` says how these meet. An order begins with
        the join of the row's own input. ``inputs`` and ``layout`` are empty for
        other blocks.

        ``measured`` has for each large ``input`` that was read when the rows left for it had been
        measured these ``rows`` (null where Spark does not say) and their ``bytes`` in memory, how
        it was ``joined`` with them ("rows broadcast", "both shuffled", "input broadcast", or "not
        joined" where nothing was left for it), and the ``seconds`` that it waited, from the
        beginning of the block's last action (null where nobody knows).

        A ``run`` has:

        - ``block`` (identity), ``tasks``, ``rows_in``, ``rows_out``, ``decisions``, and tuples
          ``explored``: sent another way than was planned for them, to learn of it;
        - ``policy_failures``, the tasks in which the policy failed and the written order took its
          place, and ``policy_error``, an error that it failed with, empty where there was none;
        - ``told_apart``: for each ``column`` by whose values rows were told apart, to be routed
          each class its own way, the most ``classes`` at a time, and how many ``rows``;
        - ``seconds`` in the block, split into ``work_seconds``, ``routing_seconds``,
          ``output_seconds`` (putting results together), ``core_seconds`` (waiting for a core),
          ``answer_seconds`` (waiting for answers beyond what these cost) and ``other_seconds``;
        - ``calls`` made, ``calls_possible``, ``calls_avoided``, and ``seconds_spared``,
          an estimate of what the avoided calls would have cost;
        - ``predicates``: ``text``, ``rows_in``, ``passed``, ``rejected``, ``null``,
          ``errors_held``, ``errors_dropped``, ``seconds``, ``first_seconds`` of them in the first
          visit of each task, with ``first_rows`` in all, ``selectivity`` and
          ``seconds_per_row`` (null if no row was evaluated), and ``nested``, the
          same again for the disjuncts of an OR;
        - ``functions``: ``name``, ``calls``, ``calls_possible``, ``avoided``,
          ``seconds``, ``seconds_spared``, rows ``remembered`` (answered without a call, since
          their arguments had been there before) or ``shared`` (a concurrent function was called
          for another row with these), ``distinct`` arguments and ``memory_bytes``
          that a process held at the most, and ``lookup_seconds``, part of ``seconds``;
        - ``orders``: ``order`` and ``rows`` over the whole run, most rows first;
        - ``slices``: ``start``, ``end``, ``rows`` and ``orders`` as above, by time;
        - ``changes``: ``when``, ``predicate`` (position), ``quantity``
          ("selectivity" or "cost"), ``old``, ``new`` (null if infinite); and
          ``changes_dropped``, how many more were noticed;
        - ``join``, null but for join blocks: ``stems``, ``cells`` (rows that came to each
          task, largest first), ``skew`` (the first of them over the median; null where there
          is none), ``spilled_bytes`` and ``spilled_files``.

        ``stems`` has for each input its name ``relation``, the rows ``read``, the rows that
        ``came`` to a task that joins (without those that a predicate dropped before, and with
        a row again for each task that it was copied to), ``rows`` and ``bytes`` that its SteM
        held at the most in any task, ``builds``, ``probes``, ``matches`` and ``fanout`` (matches
        a probe; null if there was none), tuples ``bounced`` back, rows ``killed`` by a
        predicate after they were built, and ``seconds``.

        In a join block ``calls_possible`` counts, for functions over one input, the rows of
        that input. For functions over several inputs, called from ``joined_places`` in the query,
        it is ``estimated`` how many rows the joins have before such predicates reject any; where
        nothing tells, ``joined_calls``, those made, are counted as possible.
        ``calls`` is the larger one where rows were copied.
        """
        return as_dict(self.blocks, self.left, self.called, self.asked, self.cascades)

    def _sections(self) -> ReportSections:
        return report_sections(self.blocks, self.left, self.called, self.asked, self.cascades)


def reports_page(reports: Sequence[tuple[str, str, RoutingReport]]) -> str:
    """Return a page of several reports, each with a title and what there is to say of it."""
    from eddyline.reports.html import page_of_several  # noqa: PLC0415 - only pages need jinja2

    return page_of_several([(title, about, of._sections()) for title, about, of in reports])  # noqa: SLF001 - its own
