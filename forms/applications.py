"""Forms that create and change OAuth applications, and renew their secrets."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from wtforms import BooleanField, IntegerField, RadioField, SelectMultipleField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, NumberRange, Optional

from domain.access.scopes import (
    ADMIN_MODE,
    REGISTRABLE_SCOPES,
    SCOPES_BY_NAME,
    Scope,
    describe_scopes,
    sort_scopes,
)
from domain.core.grace_period import GracePeriod
from domain.oauth.applications.types import ApplicationChange
from domain.oauth.clients.types import ApplicationView
from domain.oauth.grants.registry import PERMITTED_GRANTS
from forms.base import Form, TextLineField, limit_length

_DAYS_RANGE = NumberRange(1, 3650, message="Enter 1 to 3650 days, or leave the field empty.")


class ApplicationForm(Form):
    """The form for the name, redirect URIs, scopes and options of an application."""

    name = TextLineField(
        "Name", DataRequired("Enter a name that users will recognize."), limit_length(100, "A name")
    )
    redirect_uris = TextAreaField("Redirect URIs")
    confidential = BooleanField("Confidential", default=True)
    require_pkce = BooleanField("Require PKCE")
    refresh_for_devices = BooleanField("Refresh tokens for devices and password sign-in")
    require_dpop = BooleanField("Tokens bound to a key (DPoP)")
    omit_iss = BooleanField("GitLab compatibility (omit iss)")
    service_account = BooleanField("Service account")
    jwks = TextAreaField("Public keys")
    backchannel_logout_uri = TextLineField("Back-channel logout URL")
    allowed_groups = TextAreaField("Groups")
    refresh_idle_days = IntegerField(
        "Days until an unused refresh token expires", [_DAYS_RANGE, Optional()]
    )
    refresh_longest_days = IntegerField(
        "Days until all refresh tokens expire", [_DAYS_RANGE, Optional()]
    )
    scopes = SelectMultipleField(
        "Scopes",
        choices=[
            (name, SCOPES_BY_NAME[name].title) for name in REGISTRABLE_SCOPES if name != ADMIN_MODE
        ],
        validators=[InputRequired("Choose at least one scope.")],
    )

    @classmethod
    def from_application(cls, application: ApplicationView, groups: Iterable[str] = ()) -> Self:
        """Return the form with the current values of an application and the paths of its groups."""
        form = cls(
            data={
                **dict(application),
                "redirect_uris": "\n".join(application.redirect_uris),
                "jwks": json.dumps(application.jwks, indent=2) if application.jwks else "",
                "allowed_groups": "\n".join(groups),
            }
        )
        form._add_scope_choices(application.scopes)
        return form

    def _add_scope_choices(self, more: Iterable[str]) -> None:
        """Add the application's current scopes to the choices, so that saving keeps them."""
        offered = (choice[0] for choice in self.scopes.iter_choices())
        names = sort_scopes({*offered, *more})
        self.scopes.choices = [(name, SCOPES_BY_NAME[name].title) for name in names]

    @property
    def scope_choices(self) -> tuple[Scope, ...]:
        """Available scopes with their descriptions."""
        return describe_scopes(choice[0] for choice in self.scopes.iter_choices())

    def build_change(self) -> ApplicationChange:
        """Return the entered values. An empty field clears its value."""
        return self.build_entered_body(
            ApplicationChange,
            redirect_uris=(self.redirect_uris.data or "").split(),
            allowed_groups=(self.allowed_groups.data or "").split(),
            jwks=self.jwks.data or "",
            backchannel_logout_uri=self.backchannel_logout_uri.data or None,
            refresh_idle_days=self.refresh_idle_days.data,
            refresh_longest_days=self.refresh_longest_days.data,
        )


class SecretRenewalForm(Form):
    """The form for a new secret, with the grace period for the old secret."""

    overlap = RadioField(
        "How long does the old secret stay valid?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.DAY.key,
        validators=[InputRequired("Choose how long the old secret stays valid.")],
    )


class GrantChoice(NamedTuple):
    """A grant that administrators can allow, with its title and description."""

    name: str
    title: str
    description: str


class InstanceApplicationForm(ApplicationForm):
    """The application form for administrators, with options for trust and grants."""

    #: Option that makes a user's application instance-wide, so that the user no longer owns it.
    is_instance_wide = BooleanField("Instance-wide")
    trusted = BooleanField("Trusted")
    allowed_grants = SelectMultipleField(
        "Grants",
        choices=[(grant.GRANT_TYPE, grant.PERMISSION) for grant in PERMITTED_GRANTS],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer all scopes."""
        super().__init__(*args, **kwargs)
        self._add_scope_choices(REGISTRABLE_SCOPES)

    @classmethod
    def from_application(cls, application: ApplicationView, groups: Iterable[str] = ()) -> Self:
        """Return the form with the current values of an application and the paths of its groups."""
        form = super().from_application(application, groups)
        if not form.is_submitted():
            form.trusted.data = application.trusted
            form.allowed_grants.data = list(application.allowed_grants)
        return form

    @property
    def grant_choices(self) -> tuple[GrantChoice, ...]:
        """Grants that administrators can allow, with their descriptions."""
        return tuple(
            GrantChoice(grant.GRANT_TYPE, grant.PERMISSION, grant.PERMISSION_HELP)
            for grant in PERMITTED_GRANTS
        )
