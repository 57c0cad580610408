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
from bench.rounds import TIMES, Outcome, ratio_of
from bench.scale.soak import Soak
from bench.workloads import Work

Outcomes = Mapping[tuple[Work, str], Outcome]

_P99_OF_P50 = 4.0
#: Minimum ratio of the rate with much stored data to the rate with little.
_FLAT_RATE = 0.9
_LARGE_MS = 1_000.0
#: Growth in MiB of a worker after several webhooks of 5,000 alerts that still counts as flat.
_FLAT_MIB = 10.0
_MOST_MIB = 65.0
#: Growth in MiB during a soak that still counts as flat.
_STEADY_MIB = 3.0
_START_SECONDS = 3.0


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


_RATIOS: Sequence[tuple[Work, str, float]] = (
    (Work.TOKEN_INFO, EMPTY_VIEW, 0.65),
    (Work.USER, EMPTY_VIEW, 0.5),
    (Work.INTROSPECTION, OIDC_PROVIDER.name, 1.0),
    (Work.INTROSPECTION, DJANGO_OAUTH_TOOLKIT.name, 4.0),
    (Work.REFRESH, OIDC_PROVIDER.name, 1.3),
    (Work.REFRESH, DJANGO_OAUTH_TOOLKIT.name, 5.0),
    (Work.CODE, OIDC_PROVIDER.name, 1.3),
    (Work.DEVICE, OIDC_PROVIDER.name, 1.0),
    (Work.POLL, OIDC_PROVIDER.name, 1.0),
    *(
        (work, peer.name, 2.0)
        for work in (Work.CODE, Work.DEVICE, Work.POLL)
        for peer in (DJANGO_OAUTH_TOOLKIT, AUTHLIB)
    ),
    (Work.INTAKE, ALERTA.name, 7.0),
    (Work.INTAKE, PGBENCH, 0.4),
    (Work.DUPLICATES, ALERTA.name, 10.0),
    (Work.METRICS, ALERTA.name, 60.0),
    (Work.METRICS, PGBENCH, 0.25),
)
#: Minimum ratio of the rate of alerts that page to the rate of alerts that do not.
_PAGED_RATE = 0.8


def verdicts(outcomes: Outcomes, ours: Contender, soaked: Soak | None) -> tuple[Verdict, ...]:
    """Compare the results with the targets."""
    return (
        *(
            _ratio(work, name, factor, outcomes)
            for work, name, factor in _RATIOS
            if (work, ON_POSTGRES) in outcomes
        ),
        *_paged(outcomes),
        *_tails(outcomes),
        *_histories(outcomes),
        *_large(outcomes.get((Work.LARGE, ON_POSTGRES))),
        _memory(outcomes),
        *_soak(soaked),
        _start(ours),
    )


def _ratio(work: Work, name: str, factor: float, outcomes: Outcomes) -> Verdict:
    target = f"{work.label}: at least {factor:g} {TIMES} {name}"
    mine, theirs = outcomes.get((work, ON_POSTGRES)), outcomes.get((work, name))
    ratio = ratio_of(mine, theirs)
    if ratio is None or mine is None or theirs is None:
        return Verdict(target=target)
    spoilt = mine.errors + theirs.errors
    measured = str(ratio) + (f", with {spoilt} failures" if spoilt else "")
    is_met = ratio.median >= factor and not mine.errors
    return Verdict(target=target, measured=measured, is_met=is_met)


def _paged(outcomes: Outcomes) -> Iterator[Verdict]:
    quiet, paged = (outcomes.get((work, ON_POSTGRES)) for work in (Work.INTAKE, Work.PAGED))
    if quiet and paged and quiet.rate and paged.samples:
        ratio = paged.rate / quiet.rate
        yield Verdict(
            target=f"{Work.PAGED.label}: at least {_PAGED_RATE:g} {TIMES} other projects",
            measured=f"{ratio:.2f} {TIMES}",
            is_met=ratio >= _PAGED_RATE and not paged.errors,
        )


def _tails(outcomes: Outcomes) -> Iterator[Verdict]:
    for work in Work:
        mine = outcomes.get((work, ON_POSTGRES))
        if mine is None or work is Work.LARGE:
            continue
        target = f"{work.label}: p99 at most {_P99_OF_P50:g} {TIMES} p50"
        if not mine.samples:
            yield Verdict(target=target)
            continue
        ratio = mine.p99 / max(mine.p50, 1e-3)
        measured = f"{ratio:.1f} {TIMES}"
        yield Verdict(target=target, measured=measured, is_met=ratio <= _P99_OF_P50)


def _histories(outcomes: Outcomes) -> Iterator[Verdict]:
    for work in Work:
        little, much = outcomes.get((work, ON_POSTGRES)), outcomes.get((work, MUCH_STORED))
        if ratio := ratio_of(much, little):
            yield Verdict(
                target=(
                    f"{work.label}, large database: at least {_FLAT_RATE:g} {TIMES} a small"
                    " database"
                ),
                measured=str(ratio),
                is_met=ratio.median >= _FLAT_RATE,
            )


def _large(mine: Outcome | None) -> tuple[Verdict, ...]:
    if mine is None:
        return ()
    duration = "A webhook of 5,000 alerts: less than a second"
    memory = f"Webhooks of 5,000 alerts: a worker grows by at most {_FLAT_MIB:g} MiB"
    if not mine.samples:
        return Verdict(target=duration), Verdict(target=memory)
    grown = mine.memory_after - mine.memory_before
    return (
        Verdict(target=duration, measured=f"{mine.p50:.0f} ms", is_met=mine.p50 < _LARGE_MS),
        Verdict(target=memory, measured=f"{grown:+.1f} MiB", is_met=grown <= _FLAT_MIB),
    )


def _memory(outcomes: Outcomes) -> Verdict:
    largest = max(each.memory_after for (_, name), each in outcomes.items() if name == ON_POSTGRES)
    return Verdict(
        target=f"A web process: at most {_MOST_MIB:g} MiB (proportional set size)",
        measured=f"{largest:.0f} MiB",
        is_met=largest <= _MOST_MIB,
    )


def _soak(soaked: Soak | None) -> Iterator[Verdict]:
    if soaked is not None:
        size = f"{soaked.memory[-1]:.0f} MiB, {soaked.growth:+.1f} MiB"
        yield Verdict(
            target=(
                f"After {soaked.minutes} minutes of load: less than {_MOST_MIB:g} MiB,"
                f" and at most {_STEADY_MIB:g} MiB more than after the warm-up"
            ),
            measured=f"{size}, {soaked.errors} failures",
            is_met=(
                soaked.memory[-1] < _MOST_MIB and soaked.growth <= _STEADY_MIB and not soaked.errors
            ),
        )


def _start(ours: Contender) -> Verdict:
    target = f"From the command to the first response: less than {_START_SECONDS:g} s"
    took = ours.start_seconds
    if took is None:
        return Verdict(target=target)
    return Verdict(target=target, measured=f"{took:.1f} s", is_met=took < _START_SECONDS)
