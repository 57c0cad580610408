"""The targets of the benchmark: ratios, and generous absolute limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.contenders import (
    EMPTY_VIEW,
    MUCH_STORED,
    ON_POSTGRES,
    PGBENCH,
    Contender,
)
from bench.peer_programs import ALERTA, AUTHLIB, DJANGO_OAUTH_TOOLKIT, OIDC_PROVIDER
from bench.rounds import TIMES_SIGN, Outcome, compute_ratio
from bench.scale.soak import MemorySoak
from bench.workloads import RequestKind

Outcomes = Mapping[tuple[RequestKind, str], Outcome]

_P99_OF_P50 = 4.0
#: Minimum ratio of the rate with much stored data to the rate with little.
_MIN_FLAT_RATE = 0.9
_MAX_LARGE_MS = 1_000.0
#: Growth in MiB of a worker after several webhooks of 5,000 alerts that still counts as flat.
_MAX_FLAT_MIB = 10.0
_MAX_MEMORY_MIB = 65.0
#: Growth in MiB during a soak that still counts as flat.
_MAX_STEADY_MIB = 3.0
_MAX_START_SECONDS = 3.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A target and the measured value."""

    target: str
    #: Measured value. Empty if it was not measured.
    measured: str = ""
    is_met: bool = False

    @property
    def word(self) -> str:
        """Verdict in words."""
        if not self.measured:
            return "not measured"
        return "met" if self.is_met else "not met"


_TARGET_RATIOS: Sequence[tuple[RequestKind, str, float]] = (
    (RequestKind.TOKEN_INFO, EMPTY_VIEW, 0.65),
    (RequestKind.USER, EMPTY_VIEW, 0.5),
    (RequestKind.INTROSPECTION, OIDC_PROVIDER.name, 1.0),
    (RequestKind.INTROSPECTION, DJANGO_OAUTH_TOOLKIT.name, 4.0),
    (RequestKind.REFRESH, OIDC_PROVIDER.name, 1.3),
    (RequestKind.REFRESH, DJANGO_OAUTH_TOOLKIT.name, 5.0),
    (RequestKind.CODE, OIDC_PROVIDER.name, 1.3),
    (RequestKind.DEVICE, OIDC_PROVIDER.name, 1.0),
    (RequestKind.POLL, OIDC_PROVIDER.name, 1.0),
    *(
        (work, peer.name, 2.0)
        for work in (RequestKind.CODE, RequestKind.DEVICE, RequestKind.POLL)
        for peer in (DJANGO_OAUTH_TOOLKIT, AUTHLIB)
    ),
    (RequestKind.INTAKE, ALERTA.name, 7.0),
    (RequestKind.INTAKE, PGBENCH, 0.4),
    (RequestKind.DUPLICATES, ALERTA.name, 10.0),
    (RequestKind.METRICS, ALERTA.name, 60.0),
    (RequestKind.METRICS, PGBENCH, 0.25),
)
#: Minimum ratio of the rate of alerts that page to the rate of alerts that do not.
_MIN_PAGED_RATE = 0.8


def compare_with_targets(
    outcomes: Outcomes, ours: Contender, soaked: MemorySoak | None
) -> tuple[Verdict, ...]:
    """Compare the results with the targets."""
    return (
        *(
            _compare_ratio(work, name, factor, outcomes)
            for work, name, factor in _TARGET_RATIOS
            if (work, ON_POSTGRES) in outcomes
        ),
        *_compare_paged(outcomes),
        *_compare_tails(outcomes),
        *_compare_histories(outcomes),
        *_compare_large(outcomes.get((RequestKind.LARGE, ON_POSTGRES))),
        _compare_memory(outcomes),
        *_compare_soak(soaked),
        _compare_start(ours),
    )


def _compare_ratio(work: RequestKind, name: str, factor: float, outcomes: Outcomes) -> Verdict:
    target = f"{work.label}: at least {factor:g} {TIMES_SIGN} {name}"
    mine, theirs = outcomes.get((work, ON_POSTGRES)), outcomes.get((work, name))
    ratio = compute_ratio(mine, theirs)
    if ratio is None or mine is None or theirs is None:
        return Verdict(target=target)
    spoilt = mine.errors + theirs.errors
    measured = str(ratio) + (f", with {spoilt} failures" if spoilt else "")
    is_met = ratio.median >= factor and not mine.errors
    return Verdict(target=target, measured=measured, is_met=is_met)


def _compare_paged(outcomes: Outcomes) -> Iterator[Verdict]:
    quiet, paged = (
        outcomes.get((work, ON_POSTGRES)) for work in (RequestKind.INTAKE, RequestKind.PAGED)
    )
    if quiet and paged and quiet.rate and paged.samples:
        ratio = paged.rate / quiet.rate
        yield Verdict(
            target=(
                f"{RequestKind.PAGED.label}: at least {_MIN_PAGED_RATE:g} {TIMES_SIGN} other "
                "projects"
            ),
            measured=f"{ratio:.2f} {TIMES_SIGN}",
            is_met=ratio >= _MIN_PAGED_RATE and not paged.errors,
        )


def _compare_tails(outcomes: Outcomes) -> Iterator[Verdict]:
    for work in RequestKind:
        mine = outcomes.get((work, ON_POSTGRES))
        if mine is None or work is RequestKind.LARGE:
            continue
        target = f"{work.label}: p99 at most {_P99_OF_P50:g} {TIMES_SIGN} p50"
        if not mine.samples:
            yield Verdict(target=target)
            continue
        ratio = mine.p99 / max(mine.p50, 1e-3)
        measured = f"{ratio:.1f} {TIMES_SIGN}"
        yield Verdict(target=target, measured=measured, is_met=ratio <= _P99_OF_P50)


def _compare_histories(outcomes: Outcomes) -> Iterator[Verdict]:
    for work in RequestKind:
        little, much = outcomes.get((work, ON_POSTGRES)), outcomes.get((work, MUCH_STORED))
        if ratio := compute_ratio(much, little):
            yield Verdict(
                target=(
                    f"{work.label}, large database: at least {_MIN_FLAT_RATE:g} {TIMES_SIGN} a "
                    "small"
                    " database"
                ),
                measured=str(ratio),
                is_met=ratio.median >= _MIN_FLAT_RATE,
            )


def _compare_large(mine: Outcome | None) -> tuple[Verdict, ...]:
    if mine is None:
        return ()
    duration = "A webhook of 5,000 alerts: less than a second"
    memory = f"Webhooks of 5,000 alerts: a worker grows by at most {_MAX_FLAT_MIB:g} MiB"
    if not mine.samples:
        return Verdict(target=duration), Verdict(target=memory)
    grown = mine.memory_after - mine.memory_before
    return (
        Verdict(target=duration, measured=f"{mine.p50:.0f} ms", is_met=mine.p50 < _MAX_LARGE_MS),
        Verdict(target=memory, measured=f"{grown:+.1f} MiB", is_met=grown <= _MAX_FLAT_MIB),
    )


def _compare_memory(outcomes: Outcomes) -> Verdict:
    largest = max(each.memory_after for (_, name), each in outcomes.items() if name == ON_POSTGRES)
    return Verdict(
        target=f"A web process: at most {_MAX_MEMORY_MIB:g} MiB (proportional set size)",
        measured=f"{largest:.0f} MiB",
        is_met=largest <= _MAX_MEMORY_MIB,
    )


def _compare_soak(soaked: MemorySoak | None) -> Iterator[Verdict]:
    if soaked is not None:
        size = f"{soaked.memory[-1]:.0f} MiB, {soaked.growth:+.1f} MiB"
        yield Verdict(
            target=(
                f"After {soaked.minutes} minutes of load: less than {_MAX_MEMORY_MIB:g} MiB,"
                f" and at most {_MAX_STEADY_MIB:g} MiB more than after the warm-up"
            ),
            measured=f"{size}, {soaked.errors} failures",
            is_met=(
                soaked.memory[-1] < _MAX_MEMORY_MIB
                and soaked.growth <= _MAX_STEADY_MIB
                and not soaked.errors
            ),
        )


def _compare_start(ours: Contender) -> Verdict:
    target = f"From the command to the first response: less than {_MAX_START_SECONDS:g} s"
    took = ours.start_seconds
    if took is None:
        return Verdict(target=target)
    return Verdict(target=target, measured=f"{took:.1f} s", is_met=took < _MAX_START_SECONDS)
