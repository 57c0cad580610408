"""Measures one large webhook, and checks that the response is complete."""

from http import HTTPStatus
from time import perf_counter

from bench.alert_bodies import build_large_webhook
from bench.samples import CannotMeasureError, Run, Sample
from bench.workloads import LARGE_ALERTS
from tests.support.alerts.senders import Endpoint


def send_large_webhook(endpoint: Endpoint, run: Run) -> Sample:
    """Send a webhook; all three latencies are its duration, and the rate counts webhooks."""
    body = build_large_webhook(run.number)
    began = perf_counter()
    answer = endpoint.post(body)
    took = perf_counter() - began
    if answer.status_code != HTTPStatus.OK or len(answer.json()) != LARGE_ALERTS:
        raise CannotMeasureError(f"{answer.status_code}: {answer.text[:300]}")
    return Sample(rate=1 / took, p50=took * 1000, p95=took * 1000, p99=took * 1000)
