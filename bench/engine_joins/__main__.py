"""``python -m bench.engine_joins``."""

from bench.engine_joins.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
