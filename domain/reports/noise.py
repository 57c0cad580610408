"""Finds rules that open alerts again and again, and says what would make them less noisy."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

from domain.alerts.matching.matchers import Matcher, Operator, as_text
from domain.reports.figures import Counted
from domain.reports.rows import CountedAlert
from domain.reports.types import NoisyRule, ProposalKind

#: An alert that opened less often is no rule that is noisy.
LEAST_OPENINGS = 3
MOST_RULES = 10
#: How soon an alert that nobody is needed for ends.
SOON = timedelta(minutes=10)
_SOON_WORDS = f"{SOON // timedelta(minutes=1)} minutes"


def noisy_rules(counted: Counted) -> list[NoisyRule]:
    """Return the rules with the most pages and openings, the noisiest first."""
    by_title: dict[str, list[CountedAlert]] = defaultdict(list)
    for each in counted.alerts:
        by_title[each.title].append(each)
    pages = Counter(page.alert.title for page in counted.pages)
    rules = [
        _rule(title, alerts, pages[title], counted)
        for title, alerts in by_title.items()
        if len(alerts) >= LEAST_OPENINGS
    ]
    rules.sort(key=lambda each: (-each.pages, -each.openings, each.title))
    return rules[:MOST_RULES]


def matchers_of(title: str) -> str:
    """Return the matchers of the alerts with a title."""
    return as_text([Matcher("title", Operator.EQUAL, title)])


def _rule(title: str, alerts: Sequence[CountedAlert], pages: int, counted: Counted) -> NoisyRule:
    openings = len(alerts)
    # Alerts that are never grouped count as different ones.
    fingerprints = len({each.fingerprint or each.id for each in alerts})
    alone = sum(counted.ended_alone(each, SOON) for each in alerts)
    answered = sum(bool(counted.by_people(each)) for each in alerts)
    proposal, reason = _proposed(openings, alone, answered, _together(alerts))
    return NoisyRule(
        title=title,
        openings=openings,
        fingerprints=fingerprints,
        pages=pages,
        alone=alone,
        answered=answered,
        proposal=proposal,
        reason=reason,
    )


def _together(alerts: Sequence[CountedAlert]) -> int:
    """Return how many opened soon after the one before, which was still open."""
    return sum(
        after.started_at - before.started_at <= SOON
        and (before.ended_at is None or before.ended_at > after.started_at)
        for before, after in pairwise(alerts)
    )


def _proposed(openings: int, alone: int, answered: int, together: int) -> tuple[ProposalKind, str]:
    if 2 * alone >= openings:
        return ProposalKind.THRESHOLD, (
            f"{alone} of {openings} ended within {_SOON_WORDS} before anybody did anything. "
            "Let the rule wait longer before it fires, or raise its threshold."
        )
    if 2 * together >= openings:
        return ProposalKind.GROUP, (
            f"{together} of {openings} opened within {_SOON_WORDS} of the one before, which was "
            "still open. Let them open incidents, where a storm of them becomes one, or let their "
            "sender group them."
        )
    if not answered:
        return ProposalKind.SILENCE, (
            f"Nobody acknowledged, resolved or ignored any of the {openings}. Silence them until "
            "somebody decides what they are for."
        )
    return ProposalKind.CAUSE, (
        f"People acted on {answered} of {openings}, so they are needed: their cause is to be "
        "mended."
    )
