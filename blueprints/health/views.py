"""Health checks, and metrics of all web processes on a host, for operators."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit

from flask import Response, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from blueprints.health.notification_metrics import build_queue_collectors
from domain.core.thread_pools import is_web_process
from web.access.decorators import open_to_anyone
from web.admin.host_state import list_host_metrics
from web.admin.instance_state import (
    list_audit_stream_metrics,
    list_database_independent_metrics,
    list_integration_metrics,
    list_job_metrics,
    list_mail_metrics,
    list_queue_metrics,
    list_webhook_metrics,
)
from web.api.openapi.view_descriptions import HEALTH, AdditionalResponse, ViewDescription
from web.api.schemas.instance import Liveness, Readiness
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.memory import measure_proportional_bytes
from web.metrics import Gauge, render_metrics
from web.readiness import find_clock_warning, find_readiness_problem
from web.sealing.sealed_values import describe_client_address
from web.server.shutdown_flag import is_shutting_down
from web.server.tls import get_served_certificate
from web.services import get_git, get_settings
from web.settings.environment import Settings
from web.version import get_running_build

_CombineFunction = Callable[[Iterable[float]], float]
#: Functions that combine metrics that are not summed. The limit on open files applies to each
#: process. The server's start time is the start time of its first process.
_COMBINE_FUNCTIONS: dict[str, _CombineFunction] = {
    "process_max_fds": min,
    "process_open_fds": max,
    "process_start_time_seconds": min,
}


def build_process_collectors() -> list[Collector]:
    """Return a list with the process collector under gunicorn, or an empty list otherwise.

    Without gunicorn, prometheus_client's own process collector is sufficient.
    """
    return [_ProcessesCollector()] if is_web_process() else []


class _ProcessesCollector(Collector):
    """A metrics collector for the web processes and their parent process."""

    def collect(self) -> Iterator[Metric]:
        """Yield prometheus_client's process metrics, combined across all processes."""
        found: dict[str, list[Metric]] = {}
        for pid in _list_pids():
            for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                found.setdefault(metric.name, []).append(metric)
        for name, each in found.items():
            values = [sample.value for metric in each for sample in metric.samples]
            joined = _COMBINE_FUNCTIONS.get(name, sum)(values)
            first = each[0]
            first.samples = [first.samples[0]._replace(value=joined)]
            yield first
        yield GaugeMetricFamily(
            "process_proportional_memory_bytes",
            "Memory of all web processes on the host in bytes. Shared memory is counted once.",
            value=_sum_process_memory(_list_pids()),
        )


def _sum_process_memory(pids: Iterable[int]) -> int:
    total = 0
    for pid in pids:
        total += measure_proportional_bytes(pid)
        sleep(0)  # Let other greenlets run, since each process takes milliseconds.
    return total


def _list_pids() -> list[int]:
    """Return the process IDs of the server, or of this process if the kernel lists no children."""
    parent = os.getppid()
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    except OSError:
        return [os.getpid()]
    return [parent, *map(int, children.split())]


health = ApiClientBlueprint("health", __name__, errors=ErrorFormat.PAGE)
_Address = IPv4Address | IPv6Address
_FORWARDING_HEADERS = ("X_FORWARDED_FOR", "X_FORWARDED_PROTO", "X_FORWARDED_HOST", "X_REAL_IP")
_PROXY_HEADERS = tuple(f"HTTP_{name}" for name in (*_FORWARDING_HEADERS, "FORWARDED", "VIA"))
_RETRY_AFTER_SECONDS = 2
_ACCESS_DENIED_TEXT = "Without METRICS_TOKEN, only this host and METRICS_NETWORKS have access.\n"


@health.get("/healthz")
@ViewDescription(name="health.liveness", tag=HEALTH, returns=Liveness)
@open_to_anyone
def healthz() -> Response:
    """Return 200 if this process is running.

    Nothing else is checked. For `gatebell doctor`, the response also contains the client's IP
    address as the service sees it.
    """
    return jsonify(status="ok", **describe_client_address(request))


@health.get("/readyz")
@ViewDescription(
    name="health.readiness",
    tag=HEALTH,
    returns=Readiness,
    others={
        503: AdditionalResponse(
            text="The service is not ready. The body contains the reason.",
            returns=Readiness,
            headers=("Retry-After",),
        )
    },
)
@open_to_anyone
def readyz() -> Response:
    """Return 200 if the database responds and its schema is current.

    A 200 response means that the service can handle requests. A host that is shutting down
    returns 503.
    """
    if is_shutting_down():
        return _build_unavailable_response(status="stopping", database="not checked")
    missing = find_readiness_problem()
    if missing is None:
        remarks = {
            "clock": find_clock_warning(),
            "certificate": _get_certificate_warning(),
            # The service is ready even if Git is unavailable.
            "git": get_git().find_problem(),
        }
        said = {name: remark for name, remark in remarks.items() if remark}
        return jsonify(status="ok", database="ok", **said)
    return _build_unavailable_response(status="unavailable", database=missing)


def _get_certificate_warning() -> str | None:
    certificate = get_served_certificate()
    return (certificate.problem or certificate.build_expiry_warning()) if certificate else None


def _build_unavailable_response(*, status: str, database: str) -> Response:
    response = jsonify(status=status, database=database)
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    response.headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
    return response


@health.get("/metrics")
@open_to_anyone
def metrics() -> Response:
    """Return the Prometheus metrics to clients that are allowed to read them."""
    expected = get_settings().metrics_token
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if expected and not compare_digest(given.encode(), expected.encode()):
        return Response(status=HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})
    if not expected and not _is_from_metrics_network(request.environ, get_settings()):
        return Response(_ACCESS_DENIED_TEXT, HTTPStatus.FORBIDDEN, content_type="text/plain")
    problem = find_readiness_problem()
    counted = render_metrics(
        audit_streams=list_audit_stream_metrics(),
        collectors=(*build_process_collectors(), *build_queue_collectors()),
        gauges=(
            *_build_certificate_gauges(),
            *list_database_independent_metrics(problem, build=get_running_build()),
            *list_webhook_metrics(),
            *list_integration_metrics(),
            *list_mail_metrics(),
            *list_queue_metrics(),
            *list_job_metrics(),
            *list_host_metrics(get_settings()),
        ),
    )
    return Response(counted, content_type=CONTENT_TYPE_LATEST)


def _build_certificate_gauges() -> Iterator[Gauge]:
    if certificate := get_served_certificate():
        yield Gauge(
            "gatebell_tls_certificate_expiry_timestamp_seconds",
            "Expiry time of the certificate that the web server uses, in seconds since the epoch.",
            certificate.expires_at.timestamp(),
        )
        yield Gauge(
            "gatebell_tls_certificate_rejected",
            "1 if the renewed certificate files cannot be used, so that the old certificate stays.",
            int(certificate.problem is not None),
        )


def _is_from_metrics_network(environ: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether a request came from this machine or from a network in METRICS_NETWORKS."""
    address = _parse_address(environ.get("REMOTE_ADDR", ""))
    is_forwarded = any(name in environ for name in _PROXY_HEADERS)
    if address is None or (is_forwarded and not _is_address_set_by_proxy(environ)):
        return False
    if any(address in network for network in _parse_networks(settings.metrics_networks)):
        return True
    return address.is_loopback and not is_forwarded and _accepts_direct_requests(settings)


def _is_address_set_by_proxy(environ: Mapping[str, Any]) -> bool:
    """Return whether a trusted proxy set the client address.

    See `web/http/lifecycle.py`.
    """
    original = environ.get("werkzeug.proxy_fix.orig", {})
    return bool(original) and original.get("REMOTE_ADDR") != environ["REMOTE_ADDR"]


def _accepts_direct_requests(settings: Settings) -> bool:
    if settings.trusted_proxies:
        return True  # a proxy sets the client's IP address
    host = urlsplit(settings.base_url).hostname or ""
    address = _parse_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _parse_address(text: str) -> _Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


@cache
def _parse_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
