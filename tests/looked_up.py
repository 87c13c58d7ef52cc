"""Py4J, which remembers the classes and static methods that it has looked up in the JVM.

It asks for each anew, and where PySpark says ``sc._jvm.functions.col`` that is two questions
before the call; for a class that is found through an import the JVM searches all its jars.
"""

from __future__ import annotations

from typing import Any, Final

from py4j.java_gateway import JavaClass, JavaMember, JVMView

FORGETFUL: Final = {JVMView: JVMView.__getattr__, JavaClass: JavaClass.__getattr__}
"""The classes that look something up, and how they do it by themselves."""


def remember() -> None:
    """Let them look up each name once. What may change, a static field, is not remembered."""
    for kind, look_up in FORGETFUL.items():
        kind.__getattr__ = _remembering(look_up)


def _remembering(look_up: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    known: dict[tuple[object, object, str], Any] = {}

    def found(holder: Any, name: str) -> Any:  # noqa: ANN401
        # A view of the JVM and a class each know their gateway; only a class has a name.
        key = holder._gateway_client, vars(holder).get("_fqn"), name
        if key not in known:
            answer = look_up(holder, name)
            if not isinstance(answer, JavaClass | JavaMember):
                return answer
            known[key] = answer
        return known[key]

    return found
