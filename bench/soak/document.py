"""Writes docs/evidence/soak.md from the results."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from bench.soak.claims import (
    MAX_MEMORY_GROWTH,
    PERMANENT_TABLES,
    SoakResults,
    compute_memory_slope,
    list_lasting_processes,
    select_second_half,
    verify_claims,
)
from bench.soak.keepers import KILLS_END, KILLS_START
from bench.soak.ledger import KILL_SECONDS
from bench.soak.receivers import REQUESTS_PER_LATE_RESPONSE, REQUESTS_PER_REJECTION
from bench.soak.watch import Measurement

_PART_COUNT = 5
_INTRODUCTION = """\
# Soak

This page shows the results of {minutes:.0f} minutes with all kinds of load at the same time. The
purpose is to detect resource leaks and lost data. `make soak` generates this page. The service
runs on {database}, as `make run` starts it. Clients use all parts of the service at a steady pace.
From {kills_from:.0f} % to {kills_until:.0f} % of the time, a web process and the worker are killed
in turn. Memory growth is measured in the second half.

The service keeps data for at least a day. The test therefore changes the dates of data that is four
minutes old, so that it appears to be years old. `gatebell prune` then removes as much data as it
usually removes in months. A mail
server and a phone receive the pages. The receivers of webhooks and of audit events reject one in
{refused} requests, and respond to one in {late} requests after twenty seconds.

Run on {date}, {machine}. On average, the processes of the service used {load:.2f} processors, and
all programs on the machine used {busy:.2f}. These include Postgres, the clients and the receivers.

## Claims

The command fails if any claim does not hold.

"""
_ABOUT_MEMORY = f"""
## Memory

The table shows the resident memory in MiB of each process that ran during the whole second half.
*Slope* is the growth in MiB per hour in the second half: the median of the slopes between the
medians of all pairs of minutes (Theil-Sen estimator). *Lower limit* and *upper limit* are the
limits of its 95 % confidence interval. The lower limit must be at most {MAX_MEMORY_GROWTH:g} MiB
per hour. The upper limit shows how much growth the noise could hide. *PSS* is the proportional set
size at the end (`proc_pid_smaps(5)`). Resident memory includes shared memory for each process.
Unlike the PSS, it does not change when other programs start or stop using the same files.

"""
_ABOUT_ANSWERS = f"""
## Responses

The table shows the number of requests of each kind, the responses, and the longest wait in seconds.
Responses within {KILL_SECONDS:.0f} seconds after the kill of a web process are counted, but may be
wrong.

"""


def format_soak(found: SoakResults) -> str:
    """Return the document."""
    computed = [each.processor for each in found.sights]
    seconds = max(found.minutes * 60, 1.0)
    parts = [
        _INTRODUCTION.format(
            minutes=found.minutes,
            database=found.database,
            refused=REQUESTS_PER_REJECTION,
            late=REQUESTS_PER_LATE_RESPONSE,
            kills_from=100 * KILLS_START,
            kills_until=100 * KILLS_END,
            date=found.date,
            machine=found.machine,
            load=_sum_processor_time(computed) / seconds,
            busy=_sum_processor_time([each.machine for each in found.sights]) / seconds,
        ),
        *_format_table(
            ("claim", "holds", "evidence"),
            (
                (each.sentence, "yes" if each.holds else "**no**", each.seen)
                for each in verify_claims(found)
            ),
            words=3,
        ),
        _ABOUT_MEMORY,
        *_format_memory(found),
        "\n## Open files, threads and connections\n\n",
        *_format_other_resources(found),
        "\n## Tables and queues\n\n",
        *_format_rows(found),
        _ABOUT_ANSWERS,
        *_format_responses(found),
        "\n## Kills and receivers\n\n",
        *_format_kills(found),
    ]
    return "".join(parts)


def _sum_processor_time(readings: Sequence[float]) -> float:
    """Return the total processor time; the sum drops when a process is killed."""
    return sum(max(later - earlier, 0.0) for earlier, later in pairwise(readings))


def _choose_measurements(found: SoakResults) -> list[Measurement]:
    counted = [each for each in found.sights if each.rows]
    last = len(counted) - 1
    return [counted[round(part * last / _PART_COUNT)] for part in range(_PART_COUNT + 1)]


def _format_heads(marks: Sequence[Measurement]) -> list[str]:
    return [f"{each.seconds / 60:.0f} min" for each in marks]


def _format_memory(found: SoakResults) -> Iterator[str]:
    marks = _choose_measurements(found)
    head = ("process", *_format_heads(marks), "slope", "lower limit", "upper limit", "PSS")
    rows = []
    for pid in list_lasting_processes(found):
        seen = select_second_half(found, pid)
        slope = compute_memory_slope(found, pid)
        sizes = [
            f"{mark.processes[pid].resident:.1f}" if pid in mark.processes else "" for mark in marks
        ]
        limits = ("", "", "") if slope is None else (slope.an_hour, slope.low, slope.high)
        told = [f"{each:+.2f}" if isinstance(each, float) else each for each in limits]
        rows.append((seen[0][1].name, *sizes, *told, f"{seen[-1][1].proportional:.0f}"))
    yield from _format_table(head, rows)


def _format_other_resources(found: SoakResults) -> Iterator[str]:
    marks = _choose_measurements(found)
    rows = []
    for pid in list_lasting_processes(found):
        uses = [mark.processes.get(pid) for mark in marks]
        name = select_second_half(found, pid)[0][1].name
        rows.append((f"{name}: open files", *(str(use.files) if use else "" for use in uses)))
        rows.append((f"{name}: threads", *(str(use.threads) if use else "" for use in uses)))
    if any(mark.connections for mark in marks):
        rows.append(("connections to Postgres", *(str(mark.connections) for mark in marks)))
    rows.append(("messages to users", *(f"{mark.messages:,}" for mark in marks)))
    yield from _format_table(("resource", *_format_heads(marks)), rows)


def _format_rows(found: SoakResults) -> Iterator[str]:
    marks = _choose_measurements(found)
    names = sorted(marks[-1].rows, key=lambda name: -marks[-1].rows[name])
    rows = [
        (
            f"`{name}`{' (not pruned)' if name in PERMANENT_TABLES else ''}",
            *(f"{mark.rows.get(name, 0):,}" for mark in marks),
        )
        for name in names
    ]
    rows += [
        (f"queue: {name}", *(f"{mark.queues.get(name, 0):,}" for mark in marks))
        for name in marks[-1].queues
    ]
    yield from _format_table(("table or queue", *_format_heads(marks)), rows)


def _format_responses(found: SoakResults) -> Iterator[str]:
    rows = [
        (
            what,
            f"{sum(said.values()):,}",
            ", ".join(f"{words[:40]}: {count:,}" for words, count in sorted(said.items())[:4]),
            f"{found.longest.get(what, 0.0):.2f}",
        )
        for what, said in sorted(found.answers.items())
    ]
    yield from _format_table(("request", "count", "responses", "longest wait"), rows, words=1)


def _format_kills(found: SoakResults) -> Iterator[str]:
    killed = ", ".join(f"{each.name} after {each.at / 60:.1f} min" for each in found.kills)
    yield f"Killed processes: {killed or 'none'}.\n\n"
    rows = [(name, *(f"{each:,}" for each in counts)) for name, counts in found.receivers.items()]
    yield from _format_table(("receiver", "accepted", "rejected", "late responses"), rows)


def _format_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1
) -> Iterator[str]:
    yield f"| {' | '.join(head)} |\n"
    yield f"|{'|'.join(['---'] * words + ['--:'] * (len(head) - words))}|\n"
    for row in rows:
        yield f"| {' | '.join(each.replace('|', '/') for each in row)} |\n"
