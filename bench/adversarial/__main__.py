"""``python -m bench.adversarial``: see :mod:`bench.adversarial.benchmark`."""

from __future__ import annotations

from bench.adversarial.benchmark import main

raise SystemExit(main())
