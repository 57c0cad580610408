"""The endpoints of identity providers: name, method, path, parameters."""

from tests.support.wire.group_endpoints import PAGES

PROVIDERS_AT = "/api/v4/admin/identity_providers"
PROVIDER = (
    *("title", "issuer", "client_id", "client_secret", "scopes", "active", "creates_accounts"),
    *("email_domains", "vouches_for_email", "trusts_second_factor", "groups_claim"),
    *("group_roles", "administrators_group"),
)

IDENTITY_PROVIDER_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.identity_providers.index", "GET", PROVIDERS_AT, PAGES),
    (
        "api_v4.identity_providers.create",
        "POST",
        PROVIDERS_AT,
        ("slug", "preset", *PROVIDER),
    ),
    ("api_v4.identity_providers.show", "GET", f"{PROVIDERS_AT}/{{id}}", ()),
    ("api_v4.identity_providers.change", "PUT", f"{PROVIDERS_AT}/{{id}}", PROVIDER),
    ("api_v4.identity_providers.delete", "DELETE", f"{PROVIDERS_AT}/{{id}}", ()),
    ("api_v4.identity_providers.test", "POST", f"{PROVIDERS_AT}/{{id}}/test", ()),
)
