"""Plans and expressions, read as data in one crossing each.

Where calls can be put off (see :mod:`~eddyline.catalyst.pipeline`), ``PlanReader.java``
writes a whole plan into one text, and what that says is remembered by the handles: nobody has to
ask for it. Otherwise Catalyst's own JSON is read, a node or an expression at a time, for which
the JVM takes 0.35 ms an expression node. Both say the same of what is looked at here.

The text is JSON in ASCII: words that occur often (names of classes, types), attributes, each once,
and nodes or expressions, parents first. An expression is a list; an entry that is a number is an
attribute, any other is the class, the number of children, the expression's own number, its
fields, and what is told beside them, then the attributes in it where it was not read further.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from eddyline.catalyst.gateway import LOGICAL, java_class, json_of, scala_seq
from eddyline.catalyst.handles import CatalystExpression, Plan
from eddyline.catalyst.pipeline import Later, reader


class ReadNode(NamedTuple):
    """One node of an expression; ``children`` says how many of those that follow are below it.

    ``handle`` is None where it has to be looked for from the top. In a node that was not read
    further ``attributes`` are those in it, and ``below`` reads each of its children.
    """

    class_name: str
    children: int
    fields: Mapping[str, object]
    handle: CatalystExpression | None = None
    attributes: Sequence[ReadNode] = ()
    below: Callable[[], list[Expression]] | None = None


Expression = Sequence[ReadNode]
"""An expression: its nodes, parents first."""


@dataclass(frozen=True, slots=True)
class NodeFields:
    """The expressions of a node of a plan, by the fields that they are in.

    ``deterministic`` says whether all give the same answer for the same row.
    """

    fields: Mapping[str, Sequence[Expression]]
    deterministic: bool


PATTERNS: Final = {
    "has_python_function": 1,
    "has_join": 2,
    "has_semijoin": 4,
    "has_subquery": 8,
    "has_limit": 16,
}
"""What `PlanQuestions.patterns` tells, by the function of this room that is asked for it."""


def told_by_patterns(patterns: int) -> dict[str, object]:
    """Return what is known of a plan that has these patterns."""
    return {name: bool(patterns & bit) for name, bit in PATTERNS.items()}


_TOLD: Final = {
    "mode": "evalMode",
    "always": "always_casts",
    "escape": "escapeChar",
    "deterministic": "is_deterministic",
    "calls": "holds_function",
    "plans": "holds_subquery",
    "pickle": "pickle_name",
    "value": "literal_value",
    "shown": "text_of_spark",
}
"""What the text tells beside fields, by the function of this room or the field that tells it."""

_USUAL: Final = {"is_deterministic": True, "holds_function": False, "holds_subquery": False}
"""What the text tells only of expressions of which something else is true."""

_ONE: Final = ("condition", "functionExpr")
"""Fields of a node that are one expression, not several."""

_STRUCTURE: Final = frozenset({"class", "num-children"})

_ATTRIBUTE: Final = "org.apache.spark.sql.catalyst.expressions.AttributeReference"


class _Reading:
    """What one reader in the JVM has written so far."""

    def __init__(self, java: Later) -> None:
        self._java = java
        self._words: list[str] = []
        self._types: dict[int, object] = {}
        self._attributes: list[ReadNode] = []

    def content(self, text: object) -> Any:  # noqa: ANN401 - JSON
        """Take in the words and attributes of a text; return the rest of it."""
        words, attributes, rest = json.loads(str(text))
        self._words += words
        self._attributes += map(self._attribute, attributes)
        return rest

    def expression(self, entries: Iterable[Any]) -> Expression:
        return tuple(
            self._attributes[entry] if isinstance(entry, int) else self._node(*entry)
            for entry in entries
        )

    def plan(self, entry: list[Any]) -> tuple[Plan, int]:
        """Return a node of a plan without its children, and how many they are."""
        number, kind, children, patterns, deterministic, fields = entry
        plan = Plan(fetch=partial(self._java.plan, number))
        told = plan.told
        class_name = told["class_name"] = self._words[kind]
        told |= told_by_patterns(patterns)
        if "output" in fields:
            told["output_numbers"] = tuple(fields.pop("output"))
        if "joinType" in fields:
            told["join_type"] = fields.pop("joinType")
        if "whole" in fields:
            told["is_streaming"], told["loses_filters"] = fields.pop("whole")
        several = {
            name: [given] if name in _ONE else given
            for name, given in fields.items()
            if given is not None
        }
        read = {name: [self.expression(e) for e in given] for name, given in several.items()}
        told["node_fields"] = NodeFields(read, bool(deterministic))
        if "functionExpr" in read:
            told["evaluated_functions"] = (read["functionExpr"][0][0].handle,)
        elif "udfs" in read and class_name.endswith(".ArrowEvalPython"):
            told["evaluated_functions"] = tuple(map(handle_of, read["udfs"]))
        return plan, children

    def _attribute(self, entry: list[Any]) -> ReadNode:
        number, name, kind, nullable, identity, jvm, hashed, shown = entry
        handle = CatalystExpression(fetch=partial(self._java.expression, number))
        fields = {
            "name": name,
            "dataType": self._type(kind),
            "nullable": nullable,
            "exprId": {"id": identity, "jvmId": self._words[jvm]},
        }
        node = ReadNode(_ATTRIBUTE, 0, fields, handle)
        handle.told |= _USUAL | {
            "read_expression": (node,),
            "identity_number": identity,
            "data_type": self._words[kind],
            "is_nullable": nullable,
            "hash_of_value": hashed,
            "text_of_spark": shown,
            "column": (identity, self._words[kind]),
        }
        return node

    def _node(
        self,
        kind: int,
        children: int,
        number: int,
        fields: dict[str, object],
        told: dict[str, object],
        attributes: Sequence[int] | None = None,
    ) -> ReadNode:
        handle = CatalystExpression(fetch=partial(self._java.expression, number))
        handle.told |= _USUAL
        for name, value in told.items():
            if name == "type":
                handle.told["data_type"] = self._words[int(str(value))]
            else:
                handle.told[_TOLD[name]] = value
        name = self._words[kind]
        if name.endswith(".PythonUDF"):
            handle.told["function_name"] = fields["name"]
        if attributes is None:
            return ReadNode(name, children, fields, handle)
        known = [self._attributes[index] for index in attributes]
        return ReadNode(name, children, fields, handle, known, partial(self._below, number))

    def _below(self, number: int) -> list[Expression]:
        rest = self.content(self._java.below(number))
        return [self.expression(entries) for entries in rest]

    def _type(self, word: int) -> object:
        if word not in self._types:
            self._types[word] = json.loads(self._words[word])
        return self._types[word]


def read_plan(plan: Plan) -> None:
    """Have all nodes of a plan tell what they are, if nobody has yet and calls can be put off."""
    if "node_fields" in plan.told or not isinstance(plan.java, Later):
        return
    reading = _Reading(reader(plan.java.pipeline).ofPlan(plan.java))
    entries = enumerate(reading.content(reading._java.text()))
    pending: list[tuple[Plan, int, list[Plan]]] = []
    for number, entry in entries:
        node, children = reading.plan([number, *entry])
        if number == 0:  # the handle that is asked about
            plan.told |= node.told
            node = plan
        if pending:
            pending[-1][2].append(node)
        pending.append((node, children, []))
        while pending and len(pending[-1][2]) == pending[-1][1]:
            done, _, below = pending.pop()
            done.told["children"] = tuple(below)


def node_fields(plan: Plan) -> NodeFields:
    """Return the expressions of the top node, by field."""
    read_plan(plan)
    if "node_fields" not in plan.told:
        plan.told["node_fields"] = _fields_in_json(plan)
    fields = plan.told["node_fields"]
    if not isinstance(fields, NodeFields):
        raise TypeError(f"the fields of a node are not {fields!r}")
    return fields


def read_expression(expression: CatalystExpression) -> Expression:
    """Return the nodes of an expression."""
    known = expression.told.get("read_expression")
    if known is None:
        (known,) = read_expressions([expression])
        expression.told["read_expression"] = known
    return known  # type: ignore[return-value]  # what is told has no types


def read_expressions(expressions: Sequence[CatalystExpression]) -> list[Expression]:
    """Return the nodes of some expressions, read together."""
    if expressions and isinstance(expressions[0].java, Later):
        return read_sequence(scala_seq([expression.java for expression in expressions]))
    return [_nodes(json.loads(json_of(expression.java))) for expression in expressions]


def read_sequence(sequence: Later) -> list[Expression]:
    """Return the nodes of each of a sequence of expressions that is in the JVM."""
    reading = _Reading(reader(sequence.pipeline).ofExpressions(sequence))
    return [reading.expression(entries) for entries in reading.content(reading._java.text())]


def read_outputs(plans: Sequence[Plan]) -> None:
    """Have plans tell of the attributes of their outputs, in one crossing for all."""
    asked = [plan for plan in plans if "outputs" not in plan.told]
    if not asked or not all(isinstance(plan.java, Later) for plan in asked):
        return
    javas = [plan.java for plan in asked]
    reading = _Reading(reader(javas[0].pipeline).ofOutputs(javas))
    content = iter(reading.content(reading._java.text()))
    for plan in asked:
        attributes = [reading.expression(next(content)) for _ in range(next(content))]
        plan.told["outputs"] = tuple(map(handle_of, attributes))


def handle_of(expression: Expression) -> CatalystExpression:
    """Return the handle of an expression that was read by putting off calls.

    What was read of it is known where it is asked for again.
    """
    handle = expression[0].handle
    if handle is None:
        raise AssertionError("what Catalyst's JSON says has no handles")
    handle.told.setdefault("read_expression", expression)
    return handle


def _fields_in_json(plan: Plan) -> NodeFields:
    alone = plan.java.withNewChildren(
        scala_seq([java_class(LOGICAL + "OneRowRelation")()] * plan.java.children().size())
    )
    given = json.loads(json_of(alone))[0]
    read = {}
    for name in ("condition", "projectList", "udfs", "resultAttrs"):
        if isinstance(field := given.get(name), list):
            read[name] = [_nodes(expression) for expression in ([field] if name in _ONE else field)]
    return NodeFields(read, bool(alone.deterministic()))


def _nodes(entries: Iterable[Mapping[str, Any]]) -> Expression:
    return tuple(
        ReadNode(
            entry["class"],
            entry["num-children"],
            {key: value for key, value in entry.items() if key not in _STRUCTURE},
        )
        for entry in entries
    )
