"""Whether a function was called in a statement of its own, so that nobody takes what it returns."""

from __future__ import annotations

import dis
import inspect


def called_as_statement() -> bool:
    """Whether the function that asks was called in a statement of its own.

    It was not in ``print(f())`` and ``x = f()``, nor where a prompt or a notebook shows what a line
    is worth. The bytecode tells: whoever calls drops the value at once.

    >>> def f():
    ...     print(called_as_statement())
    >>> def calls():
    ...     f()
    ...     x = f()
    >>> calls()
    True
    False
    """
    asking = inspect.currentframe()
    called = asking and asking.f_back
    caller = called and called.f_back
    if caller is None:
        return True
    following = (
        each for each in dis.get_instructions(caller.f_code) if each.offset > caller.f_lasti
    )
    after = next(following, None)
    return after is not None and after.opname == "POP_TOP"
