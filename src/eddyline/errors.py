"""The base of every error that Eddyline raises on its own account."""

from __future__ import annotations


class EddylineError(Exception):
    """Something that Eddyline was asked for cannot be done; the message says what to do.

    Each failure has its own subclass, next to the code that raises it, which is
    also the fitting builtin (``ValueError``, ``RuntimeError``, …). What a user's
    own function raises is never wrapped: it surfaces as itself.
    """
