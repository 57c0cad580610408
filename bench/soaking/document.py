"""Writes docs/evidence/soak.md from the results."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from bench.soaking.claims import (
    KEPT_TABLES,
    MOST_GROWTH,
    Findings,
    claims,
    lasting,
    memory_slope,
    second_half,
)
from bench.soaking.keepers import KILLS_FROM, KILLS_UNTIL
from bench.soaking.ledger import KILL_SECONDS
from bench.soaking.receivers import LATE_OF, REFUSED_OF
from bench.soaking.watch import Sight

_PARTS = 5
_INTRODUCTION = """\
# Soak

Everything at once, for {minutes:.0f} minutes, to see what grows and what gets lost. `make soak`
writes this. It starts the service as `make run` does, on {database}, with everything that people
and programs do with it, at a steady pace. From {kills_from:.0f} % to {kills_until:.0f} % of the
time, a web process and the worker are killed in turn; memory is judged by the second half. Nothing
is kept for less than a day elsewhere, so here all that is four minutes old becomes years old, and
`gatebell prune` has as much to remove as in months. A mail server and a telephone take the pages; a
receiver of webhooks and one of audit events refuse one request of {refused}, and answer one of
{late} after twenty seconds.

Run on {date}, {machine}. The processes of the service took {load:.2f} processors on average,
everything on the machine {busy:.2f}: Postgres, the visitors and receivers, and whatever else ran.

## Claims

The command fails unless all of them hold.

"""
_ABOUT_MEMORY = f"""
## Memory

The resident memory of each process in MiB, at five times and at the end; processes that were there
during the whole second half. The *slope* is that of the second half, an hour: the median of the
slopes between the medians of all pairs of minutes (Theil and Sen), with the limits between which it
is with 95 % certainty. The limit is {MOST_GROWTH:g} MiB an hour for the lower one; the upper one
says what could hide in the noise. *Share* is the proportional share in the end (PSS of
`proc_pid_smaps(5)`): resident memory counts what processes have in common for each of them, but it
does not change when other programs of the machine begin or end to use the same files.

"""
_ABOUT_ANSWERS = f"""
## Answers

What was asked, how often, what was answered, and the longest wait in seconds. Answers within
{KILL_SECONDS:.0f} seconds after a web process was killed are counted, but not judged.

"""


def as_markdown(found: Findings) -> str:
    """Return the document."""
    computed = [each.processor for each in found.sights]
    seconds = max(found.minutes * 60, 1.0)
    parts = [
        _INTRODUCTION.format(
            minutes=found.minutes,
            database=found.database,
            refused=REFUSED_OF,
            late=LATE_OF,
            kills_from=100 * KILLS_FROM,
            kills_until=100 * KILLS_UNTIL,
            date=found.date,
            machine=found.machine,
            load=_computed(computed) / seconds,
            busy=_computed([each.machine for each in found.sights]) / seconds,
        ),
        *_table(
            ("claim", "holds", "seen"),
            (
                (each.sentence, "yes" if each.holds else "**no**", each.seen)
                for each in claims(found)
            ),
            words=3,
        ),
        _ABOUT_MEMORY,
        *_memory(found),
        "\n## Files, threads, connections\n\n",
        *_other_use(found),
        "\n## Rows and queues\n\n",
        *_rows(found),
        _ABOUT_ANSWERS,
        *_answers(found),
        "\n## Kills and receivers\n\n",
        *_kills(found),
    ]
    return "".join(parts)


def _computed(readings: Sequence[float]) -> float:
    """Return the total processor time; the sum drops when a process is killed."""
    return sum(max(later - earlier, 0.0) for earlier, later in pairwise(readings))


def _marks(found: Findings) -> list[Sight]:
    counted = [each for each in found.sights if each.rows]
    last = len(counted) - 1
    return [counted[round(part * last / _PARTS)] for part in range(_PARTS + 1)]


def _heads(marks: Sequence[Sight]) -> list[str]:
    return [f"{each.seconds / 60:.0f} min" for each in marks]


def _memory(found: Findings) -> Iterator[str]:
    marks = _marks(found)
    head = ("process", *_heads(marks), "slope", "lower limit", "upper limit", "share")
    rows = []
    for pid in lasting(found):
        seen = second_half(found, pid)
        slope = memory_slope(found, pid)
        sizes = [
            f"{mark.processes[pid].resident:.1f}" if pid in mark.processes else "" for mark in marks
        ]
        limits = ("", "", "") if slope is None else (slope.an_hour, slope.low, slope.high)
        told = [f"{each:+.2f}" if isinstance(each, float) else each for each in limits]
        rows.append((seen[0][1].name, *sizes, *told, f"{seen[-1][1].proportional:.0f}"))
    yield from _table(head, rows)


def _other_use(found: Findings) -> Iterator[str]:
    marks = _marks(found)
    rows = []
    for pid in lasting(found):
        uses = [mark.processes.get(pid) for mark in marks]
        name = second_half(found, pid)[0][1].name
        rows.append((f"files of {name}", *(str(use.files) if use else "" for use in uses)))
        rows.append((f"threads of {name}", *(str(use.threads) if use else "" for use in uses)))
    if any(mark.connections for mark in marks):
        rows.append(("connections to Postgres", *(str(mark.connections) for mark in marks)))
    rows.append(("messages to people", *(f"{mark.messages:,}" for mark in marks)))
    yield from _table(("what", *_heads(marks)), rows)


def _rows(found: Findings) -> Iterator[str]:
    marks = _marks(found)
    names = sorted(marks[-1].rows, key=lambda name: -marks[-1].rows[name])
    rows = [
        (
            f"`{name}`{', which nothing prunes here' if name in KEPT_TABLES else ''}",
            *(f"{mark.rows.get(name, 0):,}" for mark in marks),
        )
        for name in names
    ]
    rows += [
        (f"waiting: {name}", *(f"{mark.queues.get(name, 0):,}" for mark in marks))
        for name in marks[-1].queues
    ]
    yield from _table(("rows", *_heads(marks)), rows)


def _answers(found: Findings) -> Iterator[str]:
    rows = [
        (
            what,
            f"{sum(said.values()):,}",
            ", ".join(f"{words[:40]}: {count:,}" for words, count in sorted(said.items())[:4]),
            f"{found.longest.get(what, 0.0):.2f}",
        )
        for what, said in sorted(found.answers.items())
    ]
    yield from _table(("what", "times", "answers", "longest"), rows, words=1)


def _kills(found: Findings) -> Iterator[str]:
    killed = ", ".join(f"{each.name} after {each.at / 60:.1f} min" for each in found.kills)
    yield f"Killed: {killed or 'nothing'}.\n\n"
    rows = [(name, *(f"{each:,}" for each in counts)) for name, counts in found.receivers.items()]
    yield from _table(("receiver", "taken", "refused", "answered late"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> Iterator[str]:
    yield f"| {' | '.join(head)} |\n"
    yield f"|{'|'.join(['---'] * words + ['--:'] * (len(head) - words))}|\n"
    for row in rows:
        yield f"| {' | '.join(each.replace('|', '/') for each in row)} |\n"
