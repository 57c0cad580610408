"""Memory, processor time and files of a web server for Prometheus, all its processes together."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from domain.threads import serves_in_greenlets

_Join = Callable[[Iterable[float]], float]
#: What is not added up: the limit is one of each process, and the server began with its first.
_JOINED: dict[str, _Join] = {
    "process_max_fds": min,
    "process_open_fds": max,
    "process_start_time_seconds": min,
}


def process_metrics() -> list[Collector]:
    """Return the collector of this server; without gunicorn, prometheus_client has its own."""
    return [_Processes()] if serves_in_greenlets() else []


class _Processes(Collector):
    """A collector of the web processes and of the one that started them."""

    def collect(self) -> Iterator[Metric]:
        """Return what prometheus_client says of each process, in one number each."""
        found: dict[str, list[Metric]] = {}
        for pid in _pids():
            for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                found.setdefault(metric.name, []).append(metric)
        for name, each in found.items():
            values = [sample.value for metric in each for sample in metric.samples]
            joined = _JOINED.get(name, sum)(values)
            first = each[0]
            first.samples = [first.samples[0]._replace(value=joined)]
            yield first


def _pids() -> list[int]:
    """Return the server's processes; where the kernel does not list them, this one alone."""
    parent = os.getppid()
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    except OSError:
        return [os.getpid()]
    return [parent, *map(int, children.split())]
