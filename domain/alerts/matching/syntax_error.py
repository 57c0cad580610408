"""The error of a text that is not made of matchers."""

from domain.alerts.matching.matchers import Matcher
from domain.alerts.matching.patterns import compiled
from domain.errors import InvalidError


class MatcherSyntaxError(Exception):
    """The text is wrong at `position`, counted in characters from 0; `reason` has no full stop."""

    def __init__(self, position: int, reason: str) -> None:
        """Store both."""
        super().__init__(reason)
        self.position = position
        self.reason = reason


def check_pattern(matcher: Matcher, position: int) -> None:
    """Raise MatcherSyntaxError if the matcher has a regular expression that RE2 does not take."""
    if matcher.operator.is_regex:
        try:
            compiled(matcher.value)
        except InvalidError as error:
            raise MatcherSyntaxError(position, f"the value of {matcher.name} {error}") from error
