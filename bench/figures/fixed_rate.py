"""A mix of requests at a constant rate, in an open loop."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from bench.constant_rate import Latencies, Request, send_at_rate
from bench.figures.saturation import Place, Usage, measured_usage
from bench.seed_counts import Counts
from bench.shots import HOLE, Mode, Shot, refresh_token_in
from bench.workloads import Work

#: Number of requests of each kind in a turn of the mix. A login costs as much as a hundred others.
MIX: Mapping[Work, int] = {
    Work.INTROSPECTION: 60,
    Work.USERINFO: 60,
    Work.CLIENT_CREDENTIALS: 30,
    Work.REFRESH: 29,
    Work.CODE: 20,
    Work.LOGIN: 1,
}
_TURN = sum(MIX.values())
#: Number of refresh tokens that are used in turn, which is far above the number of open requests.
_CHAINS = 1_000
_NOTHING_LEFT = "no prepared value left"


@dataclass(frozen=True, kw_only=True)
class FixedRate:
    """The result of a run at a constant rate."""

    rate: float
    seconds: float
    usage: Usage
    latencies: Mapping[Work, Latencies]


def counts_at_rate(rate: float, seconds: float) -> Counts:
    """Return the number of rows that a run needs from the database."""
    return Counts(
        access_tokens=_CHAINS,
        refresh_tokens=_CHAINS,
        codes=_codes(rate, seconds),
        device_codes=1,
    )


def measure_at_rate(place: Place, *, rate: float, seconds: float) -> FixedRate:
    """Send the mix for `seconds` seconds."""
    amounts = {Work.CODE: _codes(rate, seconds), Work.REFRESH: _CHAINS}
    streams = {
        work: _Stream(place.running.live.url, place.shots[work], amounts.get(work, 0))
        for work in MIX
    }
    order = _spread()

    def next_request(number: int) -> Request | None:
        return streams[order[number % _TURN]].next_request()

    with measured_usage(place) as used:
        send_at_rate(next_request, rate=rate, seconds=seconds)
    return FixedRate(
        rate=rate,
        seconds=seconds,
        usage=used[0],
        latencies={work: stream.latencies for work, stream in streams.items()},
    )


def _codes(rate: float, seconds: float) -> int:
    return int(rate * seconds * MIX[Work.CODE] / _TURN) + _TURN


def _spread() -> Sequence[Work]:
    """Return a turn of the mix in which the requests of each kind are evenly spread."""
    places = [((k + 0.5) / count, work) for work, count in MIX.items() for k in range(count)]
    return [work for _, work in sorted(places)]


class _Stream:
    """The requests of one kind."""

    def __init__(self, url: str, shot: Shot, amount: int) -> None:
        self.latencies = Latencies()
        self._url, self._shot = url, shot
        self._once = deque(shot.values.take(amount))
        self._again: Iterator[str] = cycle(shot.values.every or [""])

    def next_request(self) -> Request | None:
        """Return the next request, or None if all prepared values are used."""
        shot = self._shot
        try:
            is_once = shot.mode in {Mode.ONCE, Mode.CHAIN}
            value = self._once.popleft() if is_once else next(self._again)
        except IndexError:
            self.latencies.failed[_NOTHING_LEFT] += 1
            return None
        return Request(
            method=shot.method,
            url=self._url + shot.path.replace(HOLE, value),
            headers={name: text.replace(HOLE, value) for name, text in shot.headers.items()},
            body=shot.body.replace(HOLE, value).encode() or None,
            judge=self._judge,
            into=self.latencies,
        )

    def _judge(self, status: int, text: str) -> str:
        if not self._shot.is_right(status, text):
            return str(status)
        if self._shot.mode is Mode.CHAIN:
            self._once.append(refresh_token_in(text))
        return ""
