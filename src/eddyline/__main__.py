"""``python -m eddyline`` is the command ``eddyline``."""

from __future__ import annotations

import sys

from eddyline.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
