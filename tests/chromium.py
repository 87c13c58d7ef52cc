"""The Chromium of this machine, for tests of what a person sees."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

_PROGRAM: Final = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)

NEEDS_CHROMIUM: Final = pytest.mark.skipif(
    not _PROGRAM and not os.environ.get("CI"), reason="there is no Chromium on this machine"
)

PATIENCE: Final = 60_000  # milliseconds


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start it, and end it afterwards."""
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        # In containers there is no sandbox to be had; what is shown here are the project's pages.
        made = playwright.chromium.launch(executable_path=_PROGRAM, args=["--no-sandbox"])
        yield made
        made.close()
