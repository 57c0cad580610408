"""Forms that create and change identity providers."""

from collections.abc import Mapping
from typing import Any, Self

from wtforms import BooleanField, PasswordField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Optional

from domain.accounts.identity_providers.presets import ProviderPreset
from domain.accounts.identity_providers.types import IdentityProvider
from forms.base import Form, TextLineField, limit_length


class _NameForm(Form):
    """The first field of the form for a new identity provider. Its errors are listed first."""

    slug = TextLineField("Name in URLs", DataRequired("Enter a name for URLs."))


class IdentityProviderForm(Form):
    """The form for the connection, sign-in rules and group roles of an identity provider."""

    title = TextLineField("Title", DataRequired("Enter a title."), limit_length(100, "A title"))
    issuer = TextLineField("Issuer", DataRequired("Enter the URL of the issuer."))
    client_id = TextLineField(
        "Client ID", DataRequired("Enter the client ID that the provider issued.")
    )
    client_secret = PasswordField("Client secret", validators=[Optional()])
    scopes = TextLineField("Scopes", DataRequired("Enter the scopes."))
    active = BooleanField("Users can sign in with this provider", default=True)
    creates_accounts = BooleanField("Create accounts at the first sign-in")
    email_domains = TextLineField("Allowed email domains")
    vouches_for_email = BooleanField("Treat its email addresses as verified")
    trusts_second_factor = BooleanField("Trust its second factor")
    groups_claim = TextLineField("Groups claim")
    group_roles = TextAreaField("Roles by group")
    administrators_group = TextLineField("Administrator group")

    @classmethod
    def build_from_provider(cls, provider: IdentityProvider) -> Self:
        """Return the form with the current values of a provider."""
        lists = {
            "email_domains": ", ".join(provider.email_domains),
            "group_roles": "\n".join(provider.group_roles),
        }
        return cls(formdata=None, data={**dict(provider), **lists})

    @property
    def list_field_values(self) -> Mapping[str, Any]:
        """Values of the list fields, including empty lists."""
        return {
            "email_domains": (self.email_domains.data or "").replace(",", " ").split(),
            "group_roles": [
                each for each in (self.group_roles.data or "").splitlines() if each.strip()
            ],
        }


class NewIdentityProviderForm(_NameForm, IdentityProviderForm):
    """The form for a new identity provider, with its name in URLs and its client secret."""

    client_secret = PasswordField(
        "Client secret", validators=[InputRequired("Enter the secret that the provider issued.")]
    )

    @classmethod
    def from_preset(cls, preset: ProviderPreset) -> Self:
        """Return the form with the preset values for a kind of provider."""
        is_known = preset.key != "other"
        return cls(
            slug=preset.key if is_known else "",
            title=preset.title if is_known else "",
            issuer=preset.issuer,
            scopes=preset.scopes,
            groups_claim=preset.groups_claim,
            vouches_for_email=preset.vouches_for_email,
        )
