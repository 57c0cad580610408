"""One large webhook: how long it takes, and that the answer is whole."""

from http import HTTPStatus
from time import perf_counter

from bench.alert_bodies import large_webhook
from bench.samples import CannotMeasureError, Run, Sample
from bench.workloads import LARGE_ALERTS
from tests.support.alerts.senders import Endpoint


def send_large_webhook(endpoint: Endpoint, run: Run) -> Sample:
    """Send one; all three latencies are the time that it took, the rate is in webhooks."""
    body = large_webhook(run.number)
    began = perf_counter()
    answer = endpoint.post(body)
    took = perf_counter() - began
    if answer.status_code != HTTPStatus.OK or len(answer.json()) != LARGE_ALERTS:
        raise CannotMeasureError(f"{answer.status_code}: {answer.text[:300]}")
    return Sample(rate=1 / took, p50=took * 1000, p95=took * 1000, p99=took * 1000)
