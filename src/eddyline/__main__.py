"""``python -m eddyline`` is the command ``eddyline``."""

from __future__ import annotations

import sys

from eddyline.app.cli import program

if __name__ == "__main__":
    sys.exit(program())
