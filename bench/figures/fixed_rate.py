"""A mix of requests at a constant rate, in an open loop."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from bench.constant_rate import DueRequest, Latencies, send_at_rate
from bench.figures.saturation import ProcessorUsage, RunningArrangement, measure_usage
from bench.seed_counts import Counts
from bench.shots import VALUE_PLACEHOLDER, Shot, ValueMode, find_refresh_token
from bench.workloads import RequestKind

#: Number of requests of each kind in a turn of the mix. A login costs as much as a hundred others.
REQUEST_MIX: Mapping[RequestKind, int] = {
    RequestKind.INTROSPECTION: 60,
    RequestKind.USERINFO: 60,
    RequestKind.CLIENT_CREDENTIALS: 30,
    RequestKind.REFRESH: 29,
    RequestKind.CODE: 20,
    RequestKind.LOGIN: 1,
}
_REQUESTS_PER_TURN = sum(REQUEST_MIX.values())
#: Number of refresh tokens that are used in turn, which is far above the number of open requests.
_CHAIN_COUNT = 1_000
_NO_VALUE_LEFT = "no prepared value left"


@dataclass(frozen=True, kw_only=True)
class FixedRateResult:
    """The result of a run at a constant rate."""

    rate: float
    seconds: float
    usage: ProcessorUsage
    latencies: Mapping[RequestKind, Latencies]


def build_counts_at_rate(rate: float, seconds: float) -> Counts:
    """Return the number of rows that a run needs from the database."""
    return Counts(
        access_tokens=_CHAIN_COUNT,
        refresh_tokens=_CHAIN_COUNT,
        codes=_count_codes(rate, seconds),
        device_codes=1,
    )


def measure_at_rate(place: RunningArrangement, *, rate: float, seconds: float) -> FixedRateResult:
    """Send the mix for `seconds` seconds."""
    amounts = {RequestKind.CODE: _count_codes(rate, seconds), RequestKind.REFRESH: _CHAIN_COUNT}
    streams = {
        work: _RequestStream(place.running.live.url, place.shots[work], amounts.get(work, 0))
        for work in REQUEST_MIX
    }
    order = _spread_requests()

    def next_request(number: int) -> DueRequest | None:
        return streams[order[number % _REQUESTS_PER_TURN]].next_request()

    with measure_usage(place) as used:
        send_at_rate(next_request, rate=rate, seconds=seconds)
    return FixedRateResult(
        rate=rate,
        seconds=seconds,
        usage=used[0],
        latencies={work: stream.latencies for work, stream in streams.items()},
    )


def _count_codes(rate: float, seconds: float) -> int:
    return (
        int(rate * seconds * REQUEST_MIX[RequestKind.CODE] / _REQUESTS_PER_TURN)
        + _REQUESTS_PER_TURN
    )


def _spread_requests() -> Sequence[RequestKind]:
    """Return a turn of the mix in which the requests of each kind are evenly spread."""
    places = [
        ((k + 0.5) / count, work) for work, count in REQUEST_MIX.items() for k in range(count)
    ]
    return [work for _, work in sorted(places)]


class _RequestStream:
    """The requests of one kind."""

    def __init__(self, url: str, shot: Shot, amount: int) -> None:
        self.latencies = Latencies()
        self._url, self._shot = url, shot
        self._once = deque(shot.values.take(amount))
        self._again: Iterator[str] = cycle(shot.values.every or [""])

    def next_request(self) -> DueRequest | None:
        """Return the next request, or None if all prepared values are used."""
        shot = self._shot
        try:
            is_once = shot.mode in {ValueMode.ONCE, ValueMode.CHAIN}
            value = self._once.popleft() if is_once else next(self._again)
        except IndexError:
            self.latencies.failed[_NO_VALUE_LEFT] += 1
            return None
        return DueRequest(
            method=shot.method,
            url=self._url + shot.path.replace(VALUE_PLACEHOLDER, value),
            headers={
                name: text.replace(VALUE_PLACEHOLDER, value) for name, text in shot.headers.items()
            },
            body=shot.body.replace(VALUE_PLACEHOLDER, value).encode() or None,
            judge=self._judge,
            into=self.latencies,
        )

    def _judge(self, status: int, text: str) -> str:
        if not self._shot.is_right(status, text):
            return str(status)
        if self._shot.mode is ValueMode.CHAIN:
            self._once.append(find_refresh_token(text))
        return ""
