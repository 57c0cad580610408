"""A check of what stands between people and the service: BASE_URL, TLS and proxy headers."""

import json
from collections.abc import Iterator

from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from domain.encryption.outgoing import outgoing_tls_context
from web.commands.doctor_checks.findings import Finding, failed, ok, warning
from web.pages.filters import pluralize
from web.sealing.proxy_probes import HEADER, new_probe
from web.settings.reader import Settings

_SECONDS = 10.0
#: An address of documentation (RFC 5737), which no client has.
FORGED = "192.0.2.1"
_OK = 200


def check_proxy(settings: Settings) -> Iterator[Finding]:
    """Request BASE_URL with a forged X-Forwarded-For, and look what the service makes of it."""
    url = f"{settings.base_url}/healthz"
    context = outgoing_tls_context(settings.trusted_ca_file)
    headers = {HEADER: new_probe(), "X-Forwarded-For": FORGED, "User-Agent": "gatebell doctor"}
    with PoolManager(ssl_context=context, timeout=Timeout(_SECONDS), retries=False) as client:
        try:
            answer = client.request("GET", url, headers=headers, redirect=False)
        except HTTPError as error:
            yield failed(f"{url} cannot be reached from here: {_reason(error)}.")
            return
    if answer.status != _OK:
        yield failed(f"{url} is answered {answer.status}, not {_OK}.")
        return
    yield judge_headers(answer.data, trusted=settings.trusted_proxies)


def _reason(error: HTTPError) -> str:
    text = str(getattr(error, "reason", None) or error)
    return text.rpartition(": ")[2].rstrip(".") or type(error).__name__


def judge_headers(body: bytes, *, trusted: int) -> Finding:
    """Judge what /healthz says of a request that came with a forged X-Forwarded-For."""
    try:
        said = json.loads(body)
        client, forwarded = str(said["client"]), str(said["forwarded_for"])
    except (ValueError, KeyError, TypeError):
        return warning("BASE_URL is answered by something else, or with another SECRET_KEY.")
    if client == FORGED:
        return failed(
            f"TRUSTED_PROXIES is {trusted}, and clients can choose their own IP address: "
            "the proxy does not add to X-Forwarded-For, or there are fewer proxies."
        )
    hops = len([each for each in forwarded.split(",") if each.strip() not in {"", FORGED}])
    if hops > trusted:
        return failed(
            f"X-Forwarded-For names {hops} and TRUSTED_PROXIES is {trusted}: all clients seem to "
            f" have the address {client}. Set TRUSTED_PROXIES={hops}."
        )
    through = pluralize(hops, "proxy", "proxies")
    return ok(f"BASE_URL answers, through {through}; this host is seen as {client}.")
