"""Py4J, which remembers the packages, classes and static methods that it has looked up in the JVM.

It asks for each anew, and where PySpark says ``sc._jvm.functions.col`` that is two questions
before the call. For a class that is found through an import the JVM searches all its jars, and for
``java`` in ``jvm.java.lang.Object``, which is no class: a hundredth of the time of tests of plans.
"""

from __future__ import annotations

from typing import Any, Final

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

FORGETFUL: Final = {kind: kind.__getattr__ for kind in (JVMView, JavaPackage, JavaClass)}
"""The classes that look something up, and how they do it by themselves."""


def remember() -> None:
    """Let them look up each name once. What may change, a static field, is not remembered."""
    for kind, look_up in FORGETFUL.items():
        kind.__getattr__ = _remembering(look_up)


def _remembering(look_up: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    known: dict[tuple[object, object, str], Any] = {}

    def found(holder: Any, name: str) -> Any:  # noqa: ANN401
        # Each knows its gateway; a view of the JVM has no name.
        key = holder._gateway_client, vars(holder).get("_fqn"), name
        if key not in known:
            answer = look_up(holder, name)
            # Whatever is no class is a package to Py4J, also a class that is not there yet.
            lasting = isinstance(answer, JavaClass | JavaMember) or (
                isinstance(answer, JavaPackage) and name.islower()
            )
            if not lasting:
                return answer
            known[key] = answer
        return known[key]

    return found
