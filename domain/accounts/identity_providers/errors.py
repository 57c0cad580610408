"""Errors of sign-ins through a provider.

The message is shown in the browser. `reason` is for the audit log: it contains details for
administrators that a stranger should not see. Neither contains a secret.
"""

from domain.core.errors import DomainError


class ProviderError(DomainError):
    """A failed sign-in through a provider."""

    sentence = ""

    def __init__(self, title: str, reason: str) -> None:
        """Store the reason, and build the message with the title of the provider."""
        super().__init__(self.sentence.format(title=title))
        self.reason = reason


class ProviderUnreachableError(ProviderError):
    """The provider could not be reached, so its response is unknown."""

    sentence = "{title} cannot be reached at the moment. Try again in a few minutes."


class InvalidProviderResponseError(ProviderError):
    """The response of the provider is not valid, or comes from another sender."""

    sentence = (
        "The response of {title} could not be verified. Try again. If the error persists, contact "
        "an administrator."
    )


class DeniedByProviderError(ProviderError):
    """The provider denied the sign-in, or the user canceled it."""

    sentence = "You did not sign in at {title}, or did not allow it to share your identity."


class ExpiredProviderSignInError(ProviderError):
    """The sign-in was started in another browser, took too long, or was already completed."""

    sentence = (
        "This sign-in through {title} has expired, was already completed, or was started in "
        "another browser. Start again."
    )


class IdentityNotConnectedError(ProviderError):
    """No account here is connected with the account at the provider."""

    sentence = (
        "No account is connected with your account at {title}. If you have an account, sign in "
        "with your password, and connect the accounts on the page Security of your settings. "
        "Otherwise, ask an administrator for an account."
    )


class AccountLockedError(ProviderError):
    """The account here is locked."""

    sentence = "Your account is locked. Ask an administrator to unlock it."


class SignInNotRecentError(ProviderError):
    """The provider did not confirm a recent sign-in of the user."""

    sentence = (
        "{title} did not confirm that you have just signed in there. Confirm your identity in "
        "another way, for example with your password or a passkey."
    )


class ProviderTokenRejectedError(ProviderError):
    """The provider rejects the token, because the account or its consent was removed."""

    sentence = "Your account at {title} is no longer valid."
