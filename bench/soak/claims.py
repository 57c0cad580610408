"""The claims that a soak verifies."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import median

from bench.soak.ledger import ProcessKill, WrongResponse
from bench.soak.watch import Measurement, ProcessUse

#: Maximum growth in MiB per hour. A process with this growth would take a year to reach nine GiB,
#: and each release restarts it sooner. Random effects of malloc and caches are about as large.
MAX_MEMORY_GROWTH = 1.0
_MEMORY_KINDS = (
    f"No process grows by more than {MAX_MEMORY_GROWTH:g} MiB per hour, according to the lower "
    "limits of"
    " the slopes in the second half."
)
#: Random variation: the maximum increase in open files, threads and connections from the third
#: quarter to the last.
MAX_INCREASES = {"open files": 4, "threads": 2, "connections": 4}
#: Random variation of rows in pruned tables: a factor and a constant.
_MAX_ROW_GROWTH, _MAX_ROW_INCREASE = 1.25, 200
#: Tables that are kept indefinitely by default, and grow with the activity.
PERMANENT_TABLES = frozenset({"audit_events"})
#: Maximum length of a queue at the end.
_MAX_QUEUE_LENGTH = 50
_NORMAL_95 = 1.96
_MIN_POINTS = 4
_MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class SoakResults:
    """All results of the soak."""

    date: str
    machine: str
    database: str
    minutes: float
    sights: Sequence[Measurement]
    answers: Mapping[str, Mapping[str, int]]
    longest: Mapping[str, float]
    wrong: Sequence[WrongResponse]
    kills: Sequence[ProcessKill]
    alerts: int
    lost: Sequence[str]
    doubled: Sequence[str]
    pages: int
    messages: int
    pages_missing: Sequence[tuple[str, str]]
    pages_again: Sequence[tuple[str, str]]
    pages_not_due: Sequence[tuple[str, str]]
    #: Number of accepted, rejected and late requests by the receiver.
    receivers: Mapping[str, tuple[int, int, int]]
    #: Error lines of the log, except those after kills.
    complaints: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class VerifiedClaim:
    """A claim and the evidence for it."""

    sentence: str
    seen: str
    holds: bool


@dataclass(frozen=True, kw_only=True)
class Slope:
    """The growth of a value per hour, with the limits of its 95 % confidence interval."""

    an_hour: float
    low: float
    high: float


def compute_slope(points: Sequence[tuple[float, float]]) -> Slope | None:
    """Return the slope of (seconds, value), or None if there are too few points.

    The Theil-Sen estimator is used: the median of the slopes between all pairs. An occasional
    garbage collection or large response does not affect it, and its limits need no normal
    distribution.
    """
    count = len(points)
    if count < _MIN_POINTS:
        return None
    slopes = sorted(
        (end_value - value) / (end - begin) * 3600
        for (begin, value), (end, end_value) in combinations(points, 2)
        if end > begin
    )
    reach = _NORMAL_95 * sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(round((len(slopes) - reach) / 2), 0)
    high = min(round((len(slopes) + reach) / 2), len(slopes) - 1)
    return Slope(an_hour=median(slopes), low=slopes[low], high=slopes[high])


def select_second_half(found: SoakResults, pid: int) -> list[tuple[float, ProcessUse]]:
    """Return the measurements of a process in the second half, after all kills."""
    begin = found.minutes * _MINUTE / 2
    return [
        (each.seconds, each.processes[pid])
        for each in found.sights
        if each.seconds >= begin and pid in each.processes
    ]


def compute_memory_slope(found: SoakResults, pid: int) -> Slope | None:
    """Return the slope of a process's memory in the second half, from the medians by minute.

    Resident memory is used, because the proportional share also changes when other programs start
    or stop using the same files.
    """
    minutes: dict[int, list[float]] = {}
    for seconds, use in select_second_half(found, pid):
        minutes.setdefault(int(seconds / _MINUTE), []).append(use.resident)
    return compute_slope([(minute * _MINUTE, median(seen)) for minute, seen in minutes.items()])


def list_lasting_processes(found: SoakResults) -> list[int]:
    """Return the processes that ran during the whole second half."""
    begin = found.minutes * _MINUTE / 2
    looks = [each for each in found.sights if each.seconds >= begin]
    if not looks:
        return []
    return sorted(set.intersection(*(set(each.processes) for each in looks)))


def verify_claims(found: SoakResults) -> list[VerifiedClaim]:
    """Return all claims in the order of importance."""
    return [
        *_verify_alerts(found),
        *_verify_pages(found),
        *_verify_responses(found),
        *_verify_memory(found),
        *_verify_other_resources(found),
        *_verify_rows(found),
    ]


def _verify_alerts(found: SoakResults) -> Iterator[VerifiedClaim]:
    yield VerifiedClaim(
        sentence="Each alert that was accepted with 200 is stored once.",
        seen=f"{found.alerts:,} alerts, {_format_count(found.lost, 'lost')},"
        f" {_format_count(found.doubled, 'duplicated')}",
        holds=found.alerts > 0 and not found.lost and not found.doubled,
    )


def _verify_pages(found: SoakResults) -> Iterator[VerifiedClaim]:
    kills = sum(each.name == "worker" for each in found.kills)
    yield VerifiedClaim(
        sentence="Each page that was due was sent, and no other page was sent.",
        seen=f"{found.pages:,} due, {_format_count(found.pages_missing, 'missing')},"
        f" {_format_count(found.pages_not_due, 'unexpected')}",
        holds=found.pages > 0 and not found.pages_missing and not found.pages_not_due,
    )
    yield VerifiedClaim(
        sentence="No page was sent twice, except for at most one page per killed worker.",
        seen=f"{_format_count(found.pages_again, 'sent twice')}, {kills} workers killed",
        holds=len(found.pages_again) <= kills,
    )


def _verify_responses(found: SoakResults) -> Iterator[VerifiedClaim]:
    wrong = [each for each in found.wrong if not each.after_kill]
    by_kind = Counter(f"{each.what}: {each.said[:40].strip()}" for each in wrong)
    examples = "; ".join(f"{what} ({count})" for what, count in by_kind.most_common(3))
    apart = len(found.wrong) - len(wrong)
    yield VerifiedClaim(
        sentence="Each response is correct, except after the kill of a web process.",
        seen=f"{sum(sum(each.values()) for each in found.answers.values()):,} responses,"
        f" {len(wrong)} wrong{f' ({examples})' if wrong else ''}, {apart} wrong after a kill",
        holds=not wrong,
    )
    yield VerifiedClaim(
        sentence="The log contains no errors.",
        seen=_format_count(found.complaints, "errors"),
        holds=not found.complaints,
    )


def _verify_memory(found: SoakResults) -> Iterator[VerifiedClaim]:
    slopes = {pid: compute_memory_slope(found, pid) for pid in list_lasting_processes(found)}
    if not slopes or not all(slopes.values()):
        yield VerifiedClaim(sentence=_MEMORY_KINDS, seen="too few measurements", holds=False)
        return
    growing = [
        f"{_get_process_name(found, pid)} {slope.an_hour:+.1f} ({slope.low:+.1f} to "
        f"{slope.high:+.1f})"
        for pid, slope in slopes.items()
        if slope is not None and slope.low > MAX_MEMORY_GROWTH
    ]
    yield VerifiedClaim(
        sentence=_MEMORY_KINDS,
        seen=f"{len(slopes)} processes, {_format_count(growing, 'growing')}",
        holds=not growing,
    )


def _verify_other_resources(found: SoakResults) -> Iterator[VerifiedClaim]:
    kinds: Mapping[str, Callable[[ProcessUse], int]] = {
        "open files": lambda use: use.files,
        "threads": lambda use: use.threads,
    }
    for kind, value in kinds.items():
        series = {
            _get_process_name(found, pid): [
                (at, value(use)) for at, use in select_second_half(found, pid)
            ]
            for pid in list_lasting_processes(found)
        }
        yield _verify_steady(found, kind, series)
    if any(each.connections for each in found.sights):
        connections = [(each.seconds, each.connections) for each in found.sights if each.rows]
        yield _verify_steady(found, "connections", {"to Postgres": connections})


def _verify_steady(
    found: SoakResults, kind: str, series: Mapping[str, Sequence[tuple[float, int]]]
) -> VerifiedClaim:
    growing = []
    for name, points in series.items():
        before, last = _compute_quarter_medians(found, points)
        if before is None or last is None or last > before + MAX_INCREASES[kind]:
            growing.append(f"{name}: {before} to {last}")
    return VerifiedClaim(
        sentence=f"The number of {kind} does not grow: its median in the last quarter is at most"
        f" {MAX_INCREASES[kind]} higher than in the third quarter.",
        seen=_format_count(growing, "growing"),
        holds=bool(series) and not growing,
    )


def _verify_rows(found: SoakResults) -> Iterator[VerifiedClaim]:
    counted = [each for each in found.sights if each.rows]
    growing = []
    for name in counted[-1].rows if counted else ():
        before, last = _compute_quarter_medians(
            found, [(each.seconds, each.rows[name]) for each in counted]
        )
        if name in PERMANENT_TABLES:
            continue
        if before is None or last is None or last > before * _MAX_ROW_GROWTH + _MAX_ROW_INCREASE:
            growing.append(f"{name}: {before} to {last}")
    yield VerifiedClaim(
        sentence="Tables that are pruned do not grow from the third to the last quarter.",
        seen=_format_count(growing, "growing"),
        holds=bool(counted) and not growing,
    )
    waiting = [
        f"{name}: {count:,}"
        for name, count in (counted[-1].queues.items() if counted else ())
        if count > _MAX_QUEUE_LENGTH
    ]
    yield VerifiedClaim(
        sentence=(
            f"Queues are served: no queue has more than {_MAX_QUEUE_LENGTH} entries at the end."
        ),
        seen=_format_count(waiting, "longer queues"),
        holds=bool(counted) and not waiting,
    )


def _compute_quarter_medians(
    found: SoakResults, points: Sequence[tuple[float, int]]
) -> tuple[float | None, float | None]:
    """Return the medians of the third and the last quarter."""
    quarter = found.minutes * _MINUTE / 4
    third = [value for at, value in points if 2 * quarter <= at < 3 * quarter]
    last = [value for at, value in points if at >= 3 * quarter]
    return (median(third) if third else None, median(last) if last else None)


def _get_process_name(found: SoakResults, pid: int) -> str:
    use = next(each.processes[pid] for each in found.sights if pid in each.processes)
    return f"{use.name} {pid}"


def _format_count(found: Sequence[object], words: str) -> str:
    if not found:
        return f"0 {words}"
    some = ", ".join(str(each) for each in found[:3])
    return f"{len(found)} {words}: {some[:300]}"
