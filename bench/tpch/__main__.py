"""``python -m bench.tpch``: see :mod:`bench.tpch.benchmark`."""

from __future__ import annotations

from bench.tpch.benchmark import main

raise SystemExit(main())
