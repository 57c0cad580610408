"""What to measure, and how long."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass

from bench.workloads import COMPARED, FIGURES, Work


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was asked for on the command line."""

    works: tuple[Work, ...]
    rounds: int
    seconds: int
    has_peers: bool
    has_sqlite: bool
    #: How many alerts and tokens a second database has; 0 for no second one.
    history: int
    #: How many minutes of everything in turn, to see whether memory grows; 0 for none.
    soak: int
    #: Everything once and for a second each: shows that it can be measured, and no figures.
    once: bool
    #: Measure figures in the form that others publish, in place of the comparison.
    figures: bool
    #: Length of their run at a constant rate, in minutes, and requests per second.
    minutes: int
    rate: int
    #: Measure even if the machine has other things to do.
    anyway: bool

    @property
    def runs(self) -> int:
        """How many runs each server and work has: the rounds, and one to get warm."""
        return self.rounds + 1


def read_options(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line."""
    parser = ArgumentParser(
        prog="python -m bench.compare",
        description="Measure Gatebell against the floors and its peers, interleaved.",
    )
    names = ", ".join(Work)
    parser.add_argument("--only", type=works, help=f"kinds of work, with commas: {names}")
    parser.add_argument("--rounds", type=positive, default=5, help="runs of each (5)")
    parser.add_argument("--seconds", type=positive, default=4, help="length of a run (4)")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--no-sqlite", action="store_true", help="measure on Postgres alone")
    parser.add_argument(
        "--history",
        type=positive,
        default=0,
        help="measure also with so many alerts and tokens stored, such as 1000000 (takes minutes)",
    )
    parser.add_argument(
        "--soak",
        type=positive,
        default=0,
        metavar="MINUTES",
        help="load the service with everything in turn, and watch its memory",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="run everything once, for a second each, to see that it runs; report no figures",
    )
    parser.add_argument(
        "--figures",
        action="store_true",
        help="measure figures as others publish them, in place of the comparison",
    )
    parser.add_argument(
        "--minutes", type=positive, default=30, help="with --figures: run at a constant rate (30)"
    )
    parser.add_argument(
        "--rate", type=positive, default=200, help="with --figures: requests per second of it (200)"
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="measure, with a warning, even if the machine is too busy to trust the figures",
    )
    given = parser.parse_args(arguments)
    return Options(
        works=given.only or (FIGURES if given.figures else COMPARED),
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


def works(text: str) -> tuple[Work, ...]:
    """Read kinds of work with commas between them."""
    try:
        return tuple(Work(name.strip()) for name in text.split(","))
    except ValueError as error:
        raise ArgumentTypeError(f"{error}; there are {', '.join(Work)}") from error


def positive(text: str) -> int:
    """Read a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("a whole number from 1 on")
    return int(text)
