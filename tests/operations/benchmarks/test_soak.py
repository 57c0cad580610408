"""Tests that the claims of `make soak` fail for simulated leaks and losses."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from bench.soak.claims import SoakResults, verify_claims
from bench.soak.document import format_soak
from bench.soak.ledger import AcceptedAlerts, ExpectedPages, ResponseLedger
from bench.soak.receivers import find_firing_titles
from bench.soak.watch import Measurement, ProcessUse

_MINUTES = 60
_NOISE_MIB = 0.4


def _found(
    *, memory: float = 0.0, files: float = 0.0, rows: float = 0.0, queue: int = 0
) -> SoakResults:
    """Simulate an hour in which the worker and the tables grow, but the web processes do not."""
    chance = random.Random(7)  # noqa: S311 - noise

    def use(name: str, hours: float, *, grows: bool) -> ProcessUse:
        size = 90 + chance.gauss(0, _NOISE_MIB) + grows * memory * hours
        return ProcessUse(
            name=name,
            resident=size + 40,
            proportional=size,
            files=int(30 + chance.randint(0, 2) + grows * files * hours),
            threads=4,
        )

    sights = [
        Measurement(
            seconds=float(at),
            processes={
                1: use("web", at / 3600, grows=False),
                2: use("worker", at / 3600, grows=True),
            },
            connections=20 + chance.randint(0, 2),
            rows={"alerts": int(5_000 + rows * at / 3600)},
            queues={"email": queue},
            messages=at // 4,
            processor=at / 4,
            machine=at / 2,
        )
        for at in range(0, _MINUTES * 60, 15)
    ]
    return SoakResults(
        date="2026-11-27",
        machine="on a machine",
        database="Postgres",
        minutes=_MINUTES,
        sights=sights,
        answers={"a page": {"200": 5}},
        longest={"a page": 0.1},
        wrong=(),
        kills=(),
        alerts=5,
        lost=(),
        doubled=(),
        pages=5,
        messages=5,
        pages_missing=(),
        pages_again=(),
        pages_not_due=(),
        receivers={"audit stream": (5, 1, 0)},
        complaints=(),
    )


def _failed(found: SoakResults) -> list[str]:
    return [each.sentence for each in verify_claims(found) if not each.holds]


def _wrong(*, after_kill: bool) -> SoakResults:
    ledger = ResponseLedger()
    if after_kill:
        ledger.record_kill("web", 1)
    ledger.note("a page", "500 /", is_right=False)
    return replace(_found(), wrong=ledger.wrong, kills=ledger.kills)


_CASES: Mapping[str, tuple[Callable[[], SoakResults], str]] = {
    "nothing": (_found, ""),
    "a leak of 4 MiB an hour": (lambda: _found(memory=4.0), "No process grows"),
    "files that stay open": (lambda: _found(files=40.0), "open files"),
    "a table that is not pruned": (lambda: _found(rows=20_000.0), "Tables that are pruned"),
    "a queue that is not served": (lambda: _found(queue=500), "Queues are served"),
    "a lost alert": (lambda: replace(_found(), lost=("Disk 1",)), "stored once"),
    "a page twice": (lambda: replace(_found(), pages_again=(("alice", "Page 1"),)), "sent twice"),
    "no page": (lambda: replace(_found(), pages_missing=(("alice", "Page 1"),)), "that was due"),
    "a wrong answer": (lambda: _wrong(after_kill=False), "Each response"),
    "a wrong answer after a kill": (lambda: _wrong(after_kill=True), ""),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_fault_fails_only_the_claim_about_it(name: str) -> None:
    """Check a simulated hour with one fault, or with none."""
    make, claim = _CASES[name]
    found = make()
    failed = _failed(found)
    assert len(failed) == bool(claim), failed
    assert all(claim in each for each in failed)
    assert format_soak(found).count("| **no** |") == len(failed)


def test_the_ledgers_detect_lost_doubled_late_and_undue_messages() -> None:
    titles = AcceptedAlerts()
    titles.accept(["stored", "lost", "doubled"])
    waiting = titles.waiting(older_than=0.0)
    titles.check(waiting, {"stored": 1, "doubled": 2})
    assert (titles.lost, titles.doubled) == (["lost"], ["doubled"])
    assert titles.waiting(older_than=0.0) == []
    pages = ExpectedPages()
    for person in ("alice", "bob"):
        pages.expect(person, "Page 1 of the soak")
    pages.take("alice", find_firing_titles("[critical] Page 1 of the soak (acme/shop #1)", ""))
    pages.take("carol", find_firing_titles("[critical] 2 alerts in acme/shop: ", _LISTED))
    pages.take("alice", find_firing_titles("Resolved: Page 1 of the soak (acme/shop #1)", ""))
    assert pages.missing == [("bob", "Page 1 of the soak")]
    assert pages.unexpected == [("carol", "Page 1 of the soak"), ("carol", "Page 2 of the soak")]
    assert pages.again == []


_LISTED = "2 alerts need attention.\n\n" + "\n".join(
    f"[critical] Page {number} of the soak (acme/shop #{number})\nnext: nobody\n"
    for number in (1, 2)
)
