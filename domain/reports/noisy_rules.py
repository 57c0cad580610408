"""Finds rules that open alerts repeatedly, and proposes how to make them less noisy."""

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta

from domain.alerts.matching.matcher_syntax import Matcher, MatcherOperator, format_matchers
from domain.reports.figures import is_self_resolved, list_statuses_set_by_users
from domain.reports.report_queries import CountedAlert, RankedRule
from domain.reports.types import NoisyRule, ProposalKind

#: Minimum number of alerts that a noisy rule has opened.
MIN_OPENINGS = 3
MAX_RULES = 10
#: Maximum duration of an alert that needed no attention.
MAX_UNATTENDED_DURATION = timedelta(minutes=10)
_MAX_UNATTENDED_TEXT = f"{MAX_UNATTENDED_DURATION // timedelta(minutes=1)} minutes"
#: Minimum share of a rule's alerts that people act on if the alerts are needed.
_MIN_NEEDED_SHARE = 0.4
#: Quantile of the normal distribution for a one-sided confidence of 90%.
_CONFIDENCE_QUANTILE = 1.2816


def compute_wilson_upper_bound(count: int, total: int) -> float:
    """Return the upper limit of the Wilson score interval for a share, with 90% confidence.

    With few alerts, the limit is far above the share, so a proposal requires enough alerts.
    """
    share, square = count / total, _CONFIDENCE_QUANTILE**2
    center = share + square / (2 * total)
    margin = _CONFIDENCE_QUANTILE * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    return (center + margin) / (1 + square / total)


def format_title_matcher(title: str) -> str:
    """Return the matcher for alerts with a given title, in the text format of silences."""
    return format_matchers([Matcher("title", MatcherOperator.EQUAL, title)])


class _RuleCounts:
    """Alert counts for a rule."""

    def __init__(self) -> None:
        self.openings = self.alone = self.answered = 0
        #: Number of alerts that opened soon after the previous alert, while it was still open.
        self.together = 0
        self._before: CountedAlert | None = None

    def count_alert(self, alert: CountedAlert) -> None:
        """Count an alert. Alerts must be passed in the order of their start times."""
        before, self._before = self._before, alert
        self.openings += 1
        self.alone += is_self_resolved(alert, MAX_UNATTENDED_DURATION)
        self.answered += bool(list_statuses_set_by_users(alert))
        if before is not None and alert.started_at - before.started_at <= MAX_UNATTENDED_DURATION:
            self.together += before.ended_at is None or before.ended_at > alert.started_at


class NoisyRuleCounter:
    """Counts for the rules with the most pages."""

    def __init__(self, ranked: Sequence[RankedRule]) -> None:
        """Store the rules, noisiest first."""
        self._counted = {(each.project_id, each.title): (each, _RuleCounts()) for each in ranked}

    def count_alert(self, alert: CountedAlert) -> None:
        """Count an alert that started in the period. Alerts must be in chronological order."""
        if found := self._counted.get((alert.project_id, alert.title)):
            found[1].count_alert(alert)

    def build_noisy_rules(self, paths: Mapping[int, str]) -> list[NoisyRule]:
        """Return the rules with a proposal for each. `paths` maps project IDs to paths."""
        found = []
        for rule, counted in self._counted.values():
            proposal, reason = _choose_proposal(counted)
            found.append(
                NoisyRule(
                    project=paths[rule.project_id],
                    title=rule.title,
                    openings=counted.openings,
                    fingerprints=rule.fingerprints,
                    pages=rule.pages,
                    alone=counted.alone,
                    answered=counted.answered,
                    proposal=proposal,
                    reason=reason,
                )
            )
        return found


def _choose_proposal(counted: _RuleCounts) -> tuple[ProposalKind, str]:
    openings, alone, answered = counted.openings, counted.alone, counted.answered
    together = counted.together
    if 2 * alone >= openings:
        return ProposalKind.THRESHOLD, (
            f"{alone} of {openings} alerts ended within {_MAX_UNATTENDED_TEXT}, before anybody "
            "acted on "
            "them. Let the rule wait longer before it fires, or raise its threshold."
        )
    if 2 * together >= openings:
        return ProposalKind.GROUP, (
            f"{together} of {openings} alerts opened within {_MAX_UNATTENDED_TEXT} of the "
            "previous alert, "
            "which was still open. Create an incident rule, which combines an alert storm into "
            "one incident, or group the alerts at the sender."
        )
    if compute_wilson_upper_bound(answered, openings) < _MIN_NEEDED_SHARE:
        who = f"People acted on only {answered}" if answered else "Nobody acted on any"
        return ProposalKind.SILENCE, (
            f"{who} of the {openings} alerts. Silence them until you have decided whether they are "
            "needed."
        )
    return ProposalKind.CAUSE, (
        f"People acted on {answered} of {openings} alerts, so the alerts are needed. Fix their "
        "cause."
    )
