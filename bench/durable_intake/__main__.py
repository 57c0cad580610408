"""Runs the durable-intake benchmark against Gatebell or any other service.

    python -m bench.durable_intake --intakes intakes.json --fault "./kill-and-restart" --faults 5

The command sends alerts to the intakes that a file describes. In the meantime, it runs a shell
command several times, which kills processes of the service with SIGKILL and starts them again.
docs/evidence/performance.md has an example of the file. Without a file,
`bench.durable_intake.on_gatebell` starts Gatebell with a separate Postgres and kills both.
"""

import json
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench.durable_intake.intake import (
    CannotCountError,
    DurabilityResult,
    Intake,
    format_result,
    run_benchmark,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print the result; return 1 if an alert was lost or duplicated."""
    parser = ArgumentParser(
        prog="python -m bench.durable_intake",
        description="Send alerts, kill the service several times, and count the stored alerts.",
    )
    parser.add_argument("--intakes", type=Path, help="JSON file with intakes (default: Gatebell)")
    parser.add_argument("--rate", type=float, default=50.0, help="alerts per second (50)")
    parser.add_argument("--seconds", type=float, default=120.0, help="duration in seconds (120)")
    parser.add_argument(
        "--fault", metavar="COMMAND", help="command that kills the service and starts it again"
    )
    parser.add_argument("--faults", type=int, default=5, help="number of kills (5)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write all figures to this file"
    )
    given = parser.parse_args(arguments)
    try:
        if given.intakes is None:
            # The import is local, so that benchmarks of other services do not need Gatebell.
            from bench.durable_intake.on_gatebell import measure_gatebell  # noqa: PLC0415

            account = measure_gatebell(rate=given.rate, seconds=given.seconds, faults=given.faults)
        else:
            command = shlex.split(given.fault or "")
            kill = ("the service", partial(subprocess.check_call, command))
            account = run_benchmark(
                Intake.read(given.intakes),
                rate=given.rate,
                seconds=given.seconds,
                breakers=[kill] * given.faults if given.fault else [],
            )
    except CannotCountError as error:
        sys.exit(str(error))
    _print_report(account, given.json)
    return 0 if account.is_sound else 1


def _print_report(account: DurabilityResult, file: Path | None) -> None:
    sys.stdout.write("\n".join(format_result(account)))
    for words, marks in (("Lost", account.lost), ("Duplicates", account.doubled)):
        if marks:
            sys.stdout.write(f"{words}: {', '.join(marks)}\n")
    if file:
        file.write_text(json.dumps(asdict(account), indent=2), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
