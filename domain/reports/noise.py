"""Finds rules that open alerts repeatedly, and proposes how to make them less noisy."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from domain.alerts.matching.matchers import Matcher, Operator, as_text
from domain.reports.figures import by_people, ended_alone
from domain.reports.rows import CountedAlert, RankedRule
from domain.reports.types import NoisyRule, ProposalKind

#: Minimum number of opened alerts of a noisy rule.
LEAST_OPENINGS = 3
MOST_RULES = 10
#: Maximum duration of an alert that needed no attention.
SOON = timedelta(minutes=10)
_SOON_WORDS = f"{SOON // timedelta(minutes=1)} minutes"


def matchers_of(title: str) -> str:
    """Return the matchers for alerts with a title."""
    return as_text([Matcher("title", Operator.EQUAL, title)])


class _Openings:
    """The counts of a rule."""

    def __init__(self) -> None:
        self.openings = self.alone = self.answered = 0
        #: Number of alerts that opened soon after the previous one, which was still open.
        self.together = 0
        self._before: CountedAlert | None = None

    def count(self, alert: CountedAlert) -> None:
        """Count the next alert in order of its start."""
        before, self._before = self._before, alert
        self.openings += 1
        self.alone += ended_alone(alert, SOON)
        self.answered += bool(by_people(alert))
        if before is not None and alert.started_at - before.started_at <= SOON:
            self.together += before.ended_at is None or before.ended_at > alert.started_at


class NoisyRules:
    """The counts of the rules with the most pages."""

    def __init__(self, ranked: Sequence[RankedRule]) -> None:
        """Store the rules, noisiest first."""
        self._counted = {(each.project_id, each.title): (each, _Openings()) for each in ranked}

    def count_alert(self, alert: CountedAlert) -> None:
        """Count an alert that started in the period; alerts must be in order of time."""
        if found := self._counted.get((alert.project_id, alert.title)):
            found[1].count(alert)

    def rules(self, paths: Mapping[int, str]) -> list[NoisyRule]:
        """Return the rules with a proposal for each; `paths` maps project ids to paths."""
        return [
            _rule(rule, counted, paths[rule.project_id]) for rule, counted in self._counted.values()
        ]


def _rule(rule: RankedRule, counted: _Openings, project: str) -> NoisyRule:
    proposal, reason = _proposed(counted)
    return NoisyRule(
        project=project,
        title=rule.title,
        openings=counted.openings,
        fingerprints=rule.fingerprints,
        pages=rule.pages,
        alone=counted.alone,
        answered=counted.answered,
        proposal=proposal,
        reason=reason,
    )


def _proposed(counted: _Openings) -> tuple[ProposalKind, str]:
    openings, alone, answered = counted.openings, counted.alone, counted.answered
    together = counted.together
    if 2 * alone >= openings:
        return ProposalKind.THRESHOLD, (
            f"{alone} of {openings} alerts ended within {_SOON_WORDS}, before anybody acted on "
            "them. Let the rule wait longer before it fires, or raise its threshold."
        )
    if 2 * together >= openings:
        return ProposalKind.GROUP, (
            f"{together} of {openings} alerts opened within {_SOON_WORDS} of the previous alert, "
            "which was still open. Create an incident rule, which combines an alert storm into "
            "one incident, or group the alerts at the sender."
        )
    if not answered:
        return ProposalKind.SILENCE, (
            f"Nobody acknowledged, resolved or ignored any of the {openings} alerts. Silence them "
            "until you have decided whether they are needed."
        )
    return ProposalKind.CAUSE, (
        f"People acted on {answered} of {openings} alerts, so the alerts are needed. Fix their "
        "cause."
    )
