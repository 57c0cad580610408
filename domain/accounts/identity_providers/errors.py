"""Errors for failed sign-ins through identity providers.

The message is shown in the browser. `reason` is for the audit log: it contains details for
administrators that a stranger should not see. Neither contains a secret.
"""

from domain.core.errors import DomainError


class ProviderError(DomainError):
    """Base class for errors during a sign-in through a provider."""

    sentence = ""

    def __init__(self, title: str, reason: str) -> None:
        """Store the reason, and build the message with the title of the provider."""
        super().__init__(self.sentence.format(title=title))
        self.reason = reason


class ProviderUnreachableError(ProviderError):
    """Error for a provider that could not be reached."""

    sentence = "{title} cannot be reached at the moment. Try again in a few minutes."


class InvalidProviderResponseError(ProviderError):
    """Error for a response that is not valid, or that might come from another sender."""

    sentence = (
        "The response of {title} could not be verified. Try again. If the error persists, contact "
        "an administrator."
    )


class DeniedByProviderError(ProviderError):
    """Error for a sign-in that the provider denied or the user canceled."""

    sentence = "You did not sign in at {title}, or did not allow it to share your identity."


class ExpiredProviderSignInError(ProviderError):
    """Error for a sign-in that has expired, was completed, or was started in another browser."""

    sentence = (
        "This sign-in through {title} has expired, was already completed, or was started in "
        "another browser. Start again."
    )


class IdentityNotConnectedError(ProviderError):
    """Error for an account at the provider that is not connected to an account in this instance."""

    sentence = (
        "Your {title} account is not connected to an account here. If you have an account here, "
        "sign in with your password, and connect the accounts under Settings > Security. "
        "Otherwise, ask an administrator for an account."
    )


class AccountLockedError(ProviderError):
    """Error for a sign-in with an account that is locked in this instance."""

    sentence = "Your account is locked. Ask an administrator to unlock it."


class SignInNotRecentError(ProviderError):
    """Error for a response that does not confirm a recent sign-in at the provider."""

    sentence = (
        "{title} did not confirm that you have just signed in there. Confirm your identity in "
        "another way, for example with your password or a passkey."
    )


class ProviderTokenRejectedError(ProviderError):
    """Error for a token that the provider rejects, because the account or consent was removed."""

    sentence = "Your account at {title} is no longer valid."
