"""Why nobody was signed in through a provider.

The text is for whoever stands before the browser; `reason` is for the audit log, and tells
administrators what a stranger need not know. Neither holds a secret.
"""

from domain.core.errors import DomainError


class ProviderError(DomainError):
    """Nobody was signed in."""

    sentence = ""

    def __init__(self, title: str, reason: str) -> None:
        """Take the title of the provider, and why."""
        super().__init__(self.sentence.format(title=title))
        self.reason = reason


class ProviderAwayError(ProviderError):
    """The provider could not be asked: what it would have said is not known."""

    sentence = "{title} cannot be reached at the moment. Try again in a few minutes."


class ProviderAnswerError(ProviderError):
    """The provider answered otherwise than it should, or somebody else did."""

    sentence = (
        "The response of {title} could not be verified. Try again; if it happens again, tell an "
        "administrator."
    )


class RefusedThereError(ProviderError):
    """The provider let the person not in, or the person went back."""

    sentence = "You were not signed in at {title}, or did not allow it to tell who you are."


class ExpiredError(ProviderError):
    """The sign-in was begun in another browser, took too long, or was completed before."""

    sentence = (
        "This sign-in through {title} has expired, was completed before, or was begun in another "
        "browser. Start again."
    )


class NotConnectedError(ProviderError):
    """No account here belongs to the one there."""

    sentence = (
        "No account here is connected with your account at {title}. If you have an account here, "
        "sign in with your password, and connect both on the page Security of your settings. "
        "Otherwise ask an administrator of this service for an account."
    )


class CannotSignInError(ProviderError):
    """The account here is locked."""

    sentence = "Your account here is locked. Ask an administrator of this service to unlock it."


class NoProofError(ProviderError):
    """The provider did not say that the person has just signed in there."""

    sentence = (
        "{title} did not confirm that you have just signed in there. Confirm that it is you in "
        "another way, such as with your password or a passkey."
    )


class GoneThereError(ProviderError):
    """The provider takes the token no more: the account is gone, or its consent is."""

    sentence = "Your account at {title} is no longer valid."
