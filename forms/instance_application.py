"""The form of an application, for administrators."""

from typing import Any, NamedTuple, Self

from wtforms import BooleanField, SelectMultipleField

from domain.access.scopes import REGISTRABLE
from domain.oauth.clients.types import ApplicationView
from domain.oauth.grants.registry import PERMITTED_GRANTS
from forms.application import ApplicationForm


class GrantChoice(NamedTuple):
    """A grant beside its box."""

    name: str
    title: str
    description: str


class InstanceApplicationForm(ApplicationForm):
    """The fields of an application, with those for administrators."""

    #: Only for applications of users; the owner loses the ownership.
    is_instance_wide = BooleanField("Instance-wide")
    trusted = BooleanField("Trusted")
    allowed_grants = SelectMultipleField(
        "Grants",
        choices=[(grant.GRANT_TYPE, grant.PERMISSION) for grant in PERMITTED_GRANTS],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer all scopes."""
        super().__init__(*args, **kwargs)
        self._offer(REGISTRABLE)

    @classmethod
    def of(cls, application: ApplicationView) -> Self:
        """Return the form with the current values of an application."""
        form = super().of(application)
        if not form.is_submitted():
            form.trusted.data = application.trusted
            form.allowed_grants.data = list(application.allowed_grants)
        return form

    @property
    def grant_choices(self) -> tuple[GrantChoice, ...]:
        """The grants that administrators allow, with their descriptions."""
        return tuple(
            GrantChoice(grant.GRANT_TYPE, grant.PERMISSION, grant.PERMISSION_HELP)
            for grant in PERMITTED_GRANTS
        )
