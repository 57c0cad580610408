"""Questions of a proposal that show that its mapping may be wrong."""

from collections.abc import Sequence

from domain.alerts.recognition.proposal import GuessedMapping
from domain.alerts.recognition.questions import MISSING_SEVERITY_QUESTION, Question


def list_doubts(guessed: GuessedMapping) -> Sequence[Question]:
    """Return the questions, except the question that all messages without a severity raise."""
    return [each for each in guessed.questions if each.text != MISSING_SEVERITY_QUESTION]
