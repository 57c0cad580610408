"""Health checks and metrics for operators."""

from hmac import compare_digest
from http import HTTPStatus

from flask import Response, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST

from web.access.marks import open_to_anyone
from web.admin.instance_state import (
    audit_stream_metrics,
    lasting_metrics,
    mail_metrics,
    webhook_metrics,
)
from web.admin.self_monitor import self_monitor_metrics
from web.api.description.described import HEALTH, Answer, Description, described
from web.api.schemas.instance.health import Liveness, Readiness
from web.build import running_build
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.metrics import current_metrics
from web.metrics_access import is_from_trusted_network
from web.notifications.metrics import page_metrics
from web.readiness import certificate_warning, clock_warning, git_warning, readiness_problem
from web.sealing.proxy_probes import seen_client
from web.server.process_metrics import process_metrics
from web.server.tls import served_certificate
from web.services import settings

health = MachineBlueprint("health", __name__, errors=ErrorFormat.PAGE)

_RETRY_AFTER_SECONDS = 2
_NOT_FROM_HERE = "Only this host and METRICS_NETWORKS have access without METRICS_TOKEN.\n"


@health.get("/healthz")
@described(Description(name="health.liveness", tag=HEALTH, returns=Liveness))
@open_to_anyone
def healthz() -> Response:
    """Return 200 if this process is running, without further checks.

    `gatebell doctor` also gets the IP address that its request seemed to have.
    """
    return jsonify(status="ok", **seen_client(request))


@health.get("/readyz")
@described(
    Description(
        name="health.readiness",
        tag=HEALTH,
        returns=Readiness,
        others={503: Answer(text="What is missing.", returns=Readiness, headers=("Retry-After",))},
    )
)
@open_to_anyone
def readyz() -> Response:
    """Return 200 if requests can be served: the database responds and its schema is current."""
    missing = readiness_problem()
    if missing is None:
        remarks = {
            "clock": clock_warning(),
            "certificate": certificate_warning(),
            "git": git_warning(),
        }
        said = {name: remark for name, remark in remarks.items() if remark}
        return jsonify(status="ok", database="ok", **said)
    response = jsonify(status="unavailable", database=missing)
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    response.headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
    return response


@health.get("/metrics")
@open_to_anyone
def metrics() -> Response:
    """Return the Prometheus metrics; requires METRICS_TOKEN or a trusted network."""
    expected = settings().metrics_token
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if expected and not compare_digest(given.encode(), expected.encode()):
        return Response(status=HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})
    if not expected and not is_from_trusted_network(request.environ, settings()):
        return Response(_NOT_FROM_HERE, HTTPStatus.FORBIDDEN, content_type="text/plain")
    certificate = served_certificate()
    problem = readiness_problem()
    counted = current_metrics(
        certificate_expires_at=certificate.expires_at if certificate else None,
        audit_streams=audit_stream_metrics(),
        collectors=(*process_metrics(), *page_metrics()),
        gauges=(
            *lasting_metrics(problem, build=running_build()),
            *self_monitor_metrics(),
            *webhook_metrics(),
            *mail_metrics(),
        ),
    )
    return Response(counted, content_type=CONTENT_TYPE_LATEST)
