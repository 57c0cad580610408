"""Options of the benchmark."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass

from bench.workloads import COMPARED_KINDS, FIGURE_KINDS, RequestKind


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """The options of the command line."""

    works: tuple[RequestKind, ...]
    rounds: int
    seconds: int
    has_peers: bool
    has_sqlite: bool
    #: Number of alerts and tokens in a second database, or 0 for no second database.
    history: int
    #: Duration in minutes of a soak with all requests in turn, which checks memory growth. 0 for
    #: none.
    soak: int
    #: True to run everything once for a second, without figures, to check that it works.
    once: bool
    #: True to measure figures in the form that other projects publish, instead of the comparison.
    figures: bool
    #: Duration in minutes of the run at a constant rate, and its requests per second.
    minutes: int
    rate: int
    #: True to measure even if the machine is busy.
    anyway: bool

    @property
    def runs(self) -> int:
        """Number of runs of each kind of request per server: the rounds and a warm-up."""
        return self.rounds + 1


def read_options(arguments: Sequence[str] | None = None) -> BenchmarkOptions:
    """Parse the command line."""
    parser = ArgumentParser(
        prog="python -m bench.compare",
        description="Compare Gatebell with baselines and peers, in interleaved rounds.",
    )
    names = ", ".join(RequestKind)
    parser.add_argument(
        "--only", type=parse_request_kinds, help=f"comma-separated kinds of requests: {names}"
    )
    parser.add_argument("--rounds", type=parse_positive, default=5, help="number of rounds (5)")
    parser.add_argument("--seconds", type=parse_positive, default=4, help="seconds of each run (4)")
    parser.add_argument("--no-peers", action="store_true", help="skip the peers")
    parser.add_argument("--no-sqlite", action="store_true", help="measure only on Postgres")
    parser.add_argument(
        "--history",
        type=parse_positive,
        default=0,
        help="also measure with this many stored alerts and tokens, such as 1000000 (minutes)",
    )
    parser.add_argument(
        "--soak",
        type=parse_positive,
        default=0,
        metavar="MINUTES",
        help="then send all kinds of requests in turn for this long, and check memory growth",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="run everything once for a second, to check that it works, without a report",
    )
    parser.add_argument(
        "--figures",
        action="store_true",
        help="measure figures in the form that other projects publish, instead of the comparison",
    )
    parser.add_argument(
        "--minutes",
        type=parse_positive,
        default=30,
        help="with --figures: minutes of the run at a constant rate (30)",
    )
    parser.add_argument(
        "--rate",
        type=parse_positive,
        default=200,
        help="with --figures: requests per second of the run at a constant rate (200)",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="measure with a warning, even if the machine is too busy for reliable results",
    )
    given = parser.parse_args(arguments)
    return BenchmarkOptions(
        works=given.only or (FIGURE_KINDS if given.figures else COMPARED_KINDS),
        rounds=1 if given.once else given.rounds,
        seconds=1 if given.once else given.seconds,
        has_peers=not given.no_peers,
        has_sqlite=not given.no_sqlite,
        history=given.history,
        soak=given.soak,
        once=given.once,
        figures=given.figures,
        minutes=given.minutes,
        rate=given.rate,
        anyway=given.anyway,
    )


def parse_request_kinds(text: str) -> tuple[RequestKind, ...]:
    """Parse a comma-separated list of kinds of requests."""
    try:
        return tuple(RequestKind(name.strip()) for name in text.split(","))
    except ValueError as error:
        raise ArgumentTypeError(f"{error}; choose from {', '.join(RequestKind)}") from error


def parse_positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("must be a whole number of at least 1")
    return int(text)
