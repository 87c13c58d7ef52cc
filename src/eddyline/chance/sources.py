"""Things that give other values for the same arguments: the time, chance, and unique values.

Names are those by which Python knows things, as ``datetime.datetime.now``, whatever a program
calls them.
"""

from __future__ import annotations

from typing import Final

NEVER: Final = 1 << 30
"""More arguments than anybody gives."""

# With so many arguments, or more, the result depends on these alone.
_NEEDED: Final = {
    "datetime.date.today": NEVER,
    "datetime.datetime.now": NEVER,
    "datetime.datetime.today": NEVER,
    "datetime.datetime.utcnow": NEVER,
    "os.getrandom": NEVER,
    "os.times": NEVER,
    "os.urandom": NEVER,
    "random.Random": 1,
    "random.SystemRandom": NEVER,
    "time.asctime": 1,
    "time.ctime": 1,
    "time.gmtime": 1,
    "time.localtime": 1,
    "time.strftime": 2,
    **{
        f"tempfile.{maker}": NEVER
        for maker in ("NamedTemporaryFile", "TemporaryDirectory", "mkdtemp", "mkstemp", "mktemp")
    },
    "uuid.uuid1": NEVER,
    "uuid.uuid4": NEVER,
    "uuid.uuid6": NEVER,
    "uuid.uuid7": NEVER,
    "uuid.uuid8": 3,
    **{
        f"time.{clock}{unit}": NEVER
        for clock in ("monotonic", "perf_counter", "process_time", "thread_time", "time")
        for unit in ("", "_ns")
    },
    "time.clock_gettime": NEVER,
    "time.clock_gettime_ns": NEVER,
    **{
        f"numpy.random.{maker}": 1
        for maker in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "RandomState", "SFC64")
    },
    "numpy.random.SeedSequence": 1,
    "numpy.random.default_rng": 1,
    **{f"pandas.Timestamp.{now}": NEVER for now in ("now", "today", "utcnow")},
    # A function cannot rely on which rows are together in a task.
    "pyspark.taskcontext.TaskContext.get": NEVER,
    "pyspark.taskcontext.BarrierTaskContext.get": NEVER,
    "nanoid.generate": NEVER,
    "shelve.open": NEVER,
    "shortuuid.random": NEVER,
    "shortuuid.uuid": NEVER,
    **{
        f"torch.{draw}": NEVER
        for draw in ("bernoulli", "multinomial", "normal", "rand", "randint", "randn", "randperm")
    },
}

# All functions of these draw something, except the ones named.
_DRAWING: Final = {
    "random": frozenset(["getstate", "seed", "setstate"]),
    "secrets": frozenset(["compare_digest"]),
    "numpy.random": frozenset(
        [
            *("BitGenerator", "Generator", "get_bit_generator", "get_state"),
            *("seed", "set_bit_generator", "set_state"),
        ]
    ),
}

SEEDING: Final = {"numpy.random.seed": "numpy.random", "random.seed": "random"}
"""What makes all drawing of a module depend on a seed."""

# The same thing under the name by which it is pickled, and by which people know it.
_KNOWN_AS: Final = (
    ("nt.", "os."),
    ("numpy.random._generator.", "numpy.random."),
    ("numpy.random._mt19937.", "numpy.random."),
    ("numpy.random._pcg64.", "numpy.random."),
    ("numpy.random._philox.", "numpy.random."),
    ("numpy.random._pickle.__generator_ctor", "numpy.random.Generator"),
    ("numpy.random._pickle.__randomstate_ctor", "numpy.random.RandomState"),
    ("numpy.random._sfc64.", "numpy.random."),
    ("numpy.random.bit_generator.", "numpy.random."),
    ("numpy.random.mtrand.RandomState.", "numpy.random."),  # whose methods the functions are
    ("numpy.random.mtrand.", "numpy.random."),
    ("pandas._libs.tslibs.timestamps.", "pandas."),
    ("posix.", "os."),
    ("random.Random.", "random."),  # likewise
    ("pyspark.TaskContext", "pyspark.taskcontext.TaskContext"),
    ("pyspark.BarrierTaskContext", "pyspark.taskcontext.BarrierTaskContext"),
)

_KEEPING: Final = frozenset(
    [
        "builtins.enumerate",
        "builtins.iter",
        "builtins.map",
        "builtins.reversed",
        "builtins.zip",
        "faker.proxy.Faker",
        "itertools.chain",
        "itertools.count",
        "itertools.cycle",
        "numpy.random.Generator",
        "numpy.random.RandomState",
        "random.Random",
        "random.SystemRandom",
    ]
)


def known_as(name: str) -> str:
    """Return the name by which people know a thing.

    >>> known_as("posix.urandom"), known_as("uuid.uuid4")
    ('os.urandom', 'uuid.uuid4')
    """
    for pickled, known in _KNOWN_AS:
        if name.startswith(pickled):
            return known + name[len(pickled) :]
    return name


def arguments_needed(name: str) -> int:
    """Return with how many arguments the result of a thing depends on these alone; mostly 0.

    >>> arguments_needed("random.Random"), arguments_needed("random.random") == NEVER
    (1, True)
    """
    needed = _NEEDED.get(name)
    if needed is not None:
        return needed
    module, _, member = name.rpartition(".")
    harmless = _DRAWING.get(module)
    if harmless is None or member in harmless or member.startswith("_"):
        return 0
    return 0 if member[:1].isupper() else NEVER


def is_of_known_module(name: str) -> bool:
    """Whether a thing's name tells all there is to know of it."""
    return name.rpartition(".")[0] in _DRAWING


def gives_another_each_time(class_name: str) -> bool:
    """Whether objects of a class give another value each time."""
    return class_name in _KEEPING
