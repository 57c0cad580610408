"""Presets for common identity providers. Other providers are configured manually."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ProviderPreset:
    """Default values for the settings of a new provider."""

    key: str
    title: str
    #: Issuer URL if all customers share it; otherwise, an empty string.
    issuer: str = ""
    #: Example of an issuer URL, for providers whose customers have different issuers.
    example: str = "https://login.example.com"
    scopes: str = "openid profile email"
    groups_claim: str = "groups"
    #: True if email addresses count as verified even if the ID token does not confirm them.
    vouches_for_email: bool = False
    #: Additional parameters of the authorization request, such as a request for a refresh token.
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: True if the provider returns ID tokens, with claims for groups and second factors.
    is_openid: bool = True
    #: Setup instructions for administrators.
    hint: str = ""


_PRESET_LIST = (
    ProviderPreset(
        key="keycloak",
        title="Keycloak",
        example="https://keycloak.example/realms/REALM",
        scopes="openid profile email offline_access",
        hint="For groups, add a mapper of the type Group Membership to the client.",
    ),
    ProviderPreset(
        key="entra",
        title="Microsoft Entra ID",
        example="https://login.microsoftonline.com/TENANT-ID/v2.0",
        scopes="openid profile email offline_access",
        # Entra's tokens never contain `email_verified`. In a tenant, administrators set the
        # addresses.
        vouches_for_email=True,
        hint="Use the ID of a single tenant: common and organizations accept users of all tenants. "
        "Groups are identified by their object ID.",
    ),
    ProviderPreset(
        key="google",
        title="Google",
        issuer="https://accounts.google.com",
        parameters={"access_type": "offline"},
        hint="Google returns neither groups nor the time of the sign-in. Administrators confirm "
        "their identity with a password or a passkey.",
    ),
    ProviderPreset(
        key="okta",
        title="Okta",
        example="https://YOUR-ORG.okta.com",
        scopes="openid profile email groups offline_access",
        hint="For groups, add a groups claim to the application in Okta.",
    ),
    ProviderPreset(
        key="gitlab",
        title="GitLab",
        issuer="https://gitlab.com",
        hint="Groups are identified by their paths. Use this preset for another Gatebell as well.",
    ),
    ProviderPreset(
        key="github",
        title="GitHub",
        issuer="https://github.com",
        scopes="user:email read:org",
        is_openid=False,
        hint="The issuer is https://github.com, or the URL of an Enterprise Server. Groups are "
        "organizations that approved the OAuth app, and teams, such as acme/sre. GitHub does not "
        "return the time of the sign-in, so administrators confirm their identity with a password "
        "or a passkey.",
    ),
    ProviderPreset(key="other", title="Other OpenID Connect"),
)
#: Presets by key, in the order in which they are offered.
PRESETS: Mapping[str, ProviderPreset] = {each.key: each for each in _PRESET_LIST}
