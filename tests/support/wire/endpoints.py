"""Every endpoint of the authorization server and of the REST API, with all its parameters."""

from typing import NamedTuple

from tests.support.wire.audit_endpoints import AUDIT_ENDPOINTS
from tests.support.wire.ci_cd_endpoints import CI_CD_ENDPOINTS
from tests.support.wire.contact_endpoints import CONTACT_ENDPOINTS
from tests.support.wire.escalation_endpoints import ESCALATION_ENDPOINTS
from tests.support.wire.group_endpoints import GROUP_ENDPOINTS, PAGES, PROJECTS
from tests.support.wire.heartbeat_endpoints import HEARTBEAT_ENDPOINTS
from tests.support.wire.identity_provider_endpoints import IDENTITY_PROVIDER_ENDPOINTS
from tests.support.wire.incident_endpoints import INCIDENT_ENDPOINTS
from tests.support.wire.integration_endpoints import INTEGRATION_ENDPOINTS
from tests.support.wire.on_call_endpoints import ON_CALL_ENDPOINTS
from tests.support.wire.release_endpoints import RELEASE_ENDPOINTS
from tests.support.wire.silence_endpoints import SILENCE_ENDPOINTS
from tests.support.wire.webhook_endpoints import WEBHOOK_ENDPOINTS

CLIENT = ("client_id", "client_secret")
AUTHORIZE = (
    *("client_id", "redirect_uri", "response_type", "response_mode", "scope"),
    *("state", "code_challenge", "code_challenge_method", "prompt", "max_age"),
    *("login_hint", "id_token_hint", "nonce", "display", "ui_locales"),
    *("claims_locales", "claims", "acr_values", "request", "request_uri"),
    *("dpop_jkt", "resource"),
)
TOKEN = (
    *CLIENT,
    "grant_type",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "scope",
    "username",
    "password",
    "device_code",
    "subject_token",
    "subject_token_type",
    "requested_token_type",
    "actor_token",
    "actor_token_type",
    "audience",
    "client_assertion",
    "client_assertion_type",
    "resource",
)
ABOUT_A_TOKEN = (*CLIENT, "token", "token_type_hint")
LOGOUT = (
    "id_token_hint",
    "logout_hint",
    "client_id",
    "post_logout_redirect_uri",
    "state",
    "ui_locales",
    "request",
    "decision",
)
METADATA = (
    *("redirect_uris", "token_endpoint_auth_method", "grant_types", "response_types"),
    *("client_name", "client_uri", "logo_uri", "scope", "contacts", "jwks", "jwks_uri"),
    *("client_id", "client_secret", "dpop_bound_access_tokens"),
    *("require_pushed_authorization_requests",),
)
TOKENS = (
    *PAGES,
    "state",
    "user_id",
    "revoked",
    "search",
    "created_after",
    "created_before",
    "expires_after",
    "expires_before",
    "last_used_after",
    "last_used_before",
)
NEW_TOKEN = ("name", "scopes", "scopes[]", "expires_at", "description", "access_level")
USERS = (
    *PAGES,
    "username",
    "search",
    "active",
    "blocked",
    "humans",
    "without_project_bots",
    "created_after",
    "created_before",
    "admins",
    "two_factor",
    *("exclude_active", "exclude_humans", "without_projects", "external", "extern_uid", "auditors"),
)
ALERT_TIMES = ("started_after", "started_before", "created_after", "created_before")
ALERTS = (
    *PAGES,
    "status",
    "severity",
    "search",
    "environment",
    "service",
    "integration",
    "assignee",
    *ALERT_TIMES,
)
ALERTS_TOGETHER = (
    *(*PAGES, "search", "status", "severity", "environment", "service", "assignee"),
    *ALERT_TIMES,
)


class Endpoint(NamedTuple):
    """An endpoint and its parameters."""

    name: str
    method: str
    path: str
    parameters: tuple[str, ...] = ("access_token",)


TOKENS_AT = "/api/v4/personal_access_tokens"
APPLICATIONS_AT = "/api/v4/applications"
RESOURCE_TOKENS_AT = "/api/v4/{namespace}/access_tokens"
ALERTS_AT = "/api/v4/{project}/alert_management_alerts"
REGISTRY_AT = "/api/v4/{project}/registry/repositories"
MEMBER_ROLES_AT = "/api/v4/member_roles"
MEMBER_ROLE = (
    *("name", "description", "base_access_level", "read_code", "read_alerts", "admin_alerts"),
    *("read_environments", "admin_environments", "admin_integrations"),
)
ENDPOINTS = (
    Endpoint("authorize.consent", "GET", "/oauth/authorize", AUTHORIZE),
    Endpoint("authorize.consent_by_post", "POST", "/oauth/authorize", AUTHORIZE),
    Endpoint("authorize.decide", "POST", "/oauth/authorize/decision", ("request", "decision")),
    Endpoint("device.enter", "GET", "/oauth/device", ("user_code",)),
    Endpoint("device.open_request", "POST", "/oauth/device", ("user_code",)),
    Endpoint("device.ask_for_phone", "GET", "/oauth/device/phone", ("user_code",)),
    Endpoint("device.show_to_phone", "POST", "/oauth/device/phone", ("user_code",)),
    Endpoint("device.redirect_after_sign_in", "GET", "/oauth/device/decision", ("request",)),
    Endpoint("device.decide", "POST", "/oauth/device/decision", ("request", "decision")),
    Endpoint("logout.ask", "GET", "/oauth/logout", LOGOUT),
    Endpoint("logout.decide", "POST", "/oauth/logout", LOGOUT),
    Endpoint("token.issue", "POST", "/oauth/token", TOKEN),
    Endpoint("token.push", "POST", "/oauth/par", (*AUTHORIZE, "client_secret")),
    Endpoint("token.authorize_device", "POST", "/oauth/authorize_device", (*CLIENT, "scope")),
    Endpoint("token.revoke", "POST", "/oauth/revoke", ABOUT_A_TOKEN),
    Endpoint("token.info", "GET", "/oauth/token/info"),
    Endpoint("openid.introspect", "POST", "/oauth/introspect", ABOUT_A_TOKEN),
    Endpoint("openid.userinfo", "POST", "/oauth/userinfo"),
    Endpoint("openid.keys", "GET", "/oauth/discovery/keys"),
    Endpoint("registration.register", "POST", "/oauth/register", METADATA),
    Endpoint("registration.show", "GET", "/oauth/register/{id}"),
    Endpoint("registration.change", "PUT", "/oauth/register/{id}", METADATA),
    Endpoint("registration.remove", "DELETE", "/oauth/register/{id}"),
    Endpoint("metadata.authorization_server", "GET", "/.well-known/oauth-authorization-server"),
    Endpoint("metadata.openid_provider", "GET", "/.well-known/openid-configuration"),
    Endpoint("metadata.protected_resource", "GET", "/.well-known/oauth-protected-resource"),
    Endpoint("metadata.rest_api", "GET", "/.well-known/oauth-protected-resource/api/v4"),
    Endpoint("api_v4.instance.version", "GET", "/api/v4/version"),
    Endpoint("api_v4.instance.metadata", "GET", "/api/v4/metadata"),
    *(Endpoint(*e) for e in (*RELEASE_ENDPOINTS, *CI_CD_ENDPOINTS, *HEARTBEAT_ENDPOINTS)),
    *(Endpoint(*each) for each in (*ON_CALL_ENDPOINTS, *INTEGRATION_ENDPOINTS)),
    Endpoint("api_v4.instance_settings.show", "GET", "/api/v4/application/settings"),
    Endpoint(
        "api_v4.instance_settings.change",
        "PUT",
        "/api/v4/application/settings",
        ("minimum_password_length", "release", "search_rate_limit", "oauth2_device_grant_flow"),
    ),
    Endpoint("api_v4.instance_settings.show_appearance", "GET", "/api/v4/application/appearance"),
    Endpoint(
        "api_v4.instance_settings.change_appearance",
        "PUT",
        "/api/v4/application/appearance",
        ("title", "description", "header_message", "footer_message"),
    ),
    Endpoint("api_v4.users.current", "GET", "/api/v4/user"),
    Endpoint("api_v4.users.ssh_keys", "GET", "/api/v4/user/keys", ("page", "per_page")),
    Endpoint("api_v4.users.rename_current", "PUT", "/api/v4/user", ("name",)),
    Endpoint("api_v4.users.index", "GET", "/api/v4/users", USERS),
    Endpoint("api_v4.users.show", "GET", "/api/v4/users/{id}"),
    Endpoint("api_v4.users.projects", "GET", "/api/v4/users/{id}/projects", PROJECTS),
    Endpoint(
        "api_v4.users.create",
        "POST",
        "/api/v4/users",
        (
            *("username", "email", "name", "password", "force_random_password", "admin"),
            "skip_confirmation",
        ),
    ),
    Endpoint(
        "api_v4.users.change",
        "PUT",
        "/api/v4/users/{id}",
        (
            *("username", "name", "email", "time_zone", "admin"),
            *("skip_confirmation", "skip_reconfirmation"),
        ),
    ),
    Endpoint("api_v4.users.approve", "POST", "/api/v4/users/{id}/approve"),
    Endpoint("api_v4.users.reject", "POST", "/api/v4/users/{id}/reject"),
    Endpoint("api_v4.users.deactivate", "POST", "/api/v4/users/{id}/deactivate"),
    Endpoint("api_v4.users.activate", "POST", "/api/v4/users/{id}/activate"),
    Endpoint("api_v4.users.block", "POST", "/api/v4/users/{id}/block"),
    Endpoint("api_v4.users.unblock", "POST", "/api/v4/users/{id}/unblock"),
    Endpoint("api_v4.users.export", "GET", "/api/v4/users/{id}/export"),
    Endpoint("api_v4.users.disconnect", "DELETE", "/api/v4/users/{id}/identities/{provider}"),
    Endpoint(
        "api_v4.users.delete",
        "DELETE",
        "/api/v4/users/{id}",
        ("applications_to", "delete_applications"),
    ),
    Endpoint("api_v4.personal_access_tokens.index", "GET", TOKENS_AT, TOKENS),
    Endpoint("api_v4.personal_access_tokens.show_self", "GET", f"{TOKENS_AT}/self"),
    Endpoint("api_v4.personal_access_tokens.show", "GET", f"{TOKENS_AT}/{{id}}"),
    Endpoint(
        "api_v4.personal_access_tokens.rotate_self",
        "POST",
        f"{TOKENS_AT}/self/rotate",
        ("expires_at",),
    ),
    Endpoint(
        "api_v4.personal_access_tokens.rotate",
        "POST",
        f"{TOKENS_AT}/{{id}}/rotate",
        ("expires_at",),
    ),
    Endpoint("api_v4.personal_access_tokens.revoke_self", "DELETE", f"{TOKENS_AT}/self"),
    Endpoint("api_v4.personal_access_tokens.revoke", "DELETE", f"{TOKENS_AT}/{{id}}"),
    Endpoint(
        "api_v4.personal_access_tokens.create",
        "POST",
        "/api/v4/users/{id}/personal_access_tokens",
        NEW_TOKEN,
    ),
    Endpoint("api_v4.applications.index", "GET", APPLICATIONS_AT, PAGES),
    Endpoint(
        "api_v4.applications.create",
        "POST",
        APPLICATIONS_AT,
        ("name", "redirect_uri", "scopes", "confidential", "omit_iss"),
    ),
    Endpoint("api_v4.applications.delete", "DELETE", f"{APPLICATIONS_AT}/{{id}}"),
    Endpoint("api_v4.applications.people", "GET", f"{APPLICATIONS_AT}/{{id}}/people", PAGES),
    Endpoint(
        "api_v4.applications.refused_requests",
        "GET",
        f"{APPLICATIONS_AT}/{{id}}/refused_requests",
        PAGES,
    ),
    Endpoint("api_v4.applications.renew", "POST", f"{APPLICATIONS_AT}/{{id}}/renew-secret"),
    Endpoint("api_v4.resource_tokens.index", "GET", RESOURCE_TOKENS_AT, TOKENS),
    Endpoint("api_v4.resource_tokens.create", "POST", RESOURCE_TOKENS_AT, NEW_TOKEN),
    Endpoint("api_v4.resource_tokens.show", "GET", f"{RESOURCE_TOKENS_AT}/{{id}}"),
    Endpoint(
        "api_v4.resource_tokens.rotate_self",
        "POST",
        f"{RESOURCE_TOKENS_AT}/self/rotate",
        ("expires_at",),
    ),
    Endpoint(
        "api_v4.resource_tokens.rotate",
        "POST",
        f"{RESOURCE_TOKENS_AT}/{{id}}/rotate",
        ("expires_at",),
    ),
    Endpoint("api_v4.resource_tokens.revoke", "DELETE", f"{RESOURCE_TOKENS_AT}/{{id}}"),
    *(Endpoint(*each) for each in GROUP_ENDPOINTS),
    *(Endpoint(*each) for each in AUDIT_ENDPOINTS),
    *(Endpoint(*each) for each in IDENTITY_PROVIDER_ENDPOINTS),
    Endpoint("api_v4.api_usage.index", "GET", "/api/v4/releases/usage", ("scope", *PAGES)),
    Endpoint("api_v4.member_roles.index", "GET", MEMBER_ROLES_AT, PAGES),
    Endpoint("api_v4.member_roles.create", "POST", MEMBER_ROLES_AT, MEMBER_ROLE),
    Endpoint("api_v4.member_roles.delete", "DELETE", f"{MEMBER_ROLES_AT}/{{id}}"),
    *(Endpoint(*each) for each in WEBHOOK_ENDPOINTS),
    *(Endpoint(*each) for each in ESCALATION_ENDPOINTS),
    *(Endpoint(*each) for each in INCIDENT_ENDPOINTS),
    *(Endpoint(*each) for each in CONTACT_ENDPOINTS),
    *(Endpoint(*each) for each in SILENCE_ENDPOINTS),
    Endpoint("api_v4.alerts.index", "GET", ALERTS_AT, ALERTS),
    Endpoint("api_v4.alerts.download", "GET", f"{ALERTS_AT}/export.json", ALERTS),
    Endpoint("api_v4.alerts.show", "GET", f"{ALERTS_AT}/{{id}}"),
    Endpoint("api_v4.alerts.payload", "GET", f"{ALERTS_AT}/{{id}}/payload"),
    Endpoint("api_v4.alerts.delete", "DELETE", f"{ALERTS_AT}/{{id}}"),
    Endpoint(
        "api_v4.alerts.change", "PUT", f"{ALERTS_AT}/{{id}}", ("status", "assignee", "assignee_id")
    ),
    Endpoint(
        "api_v4.alerts.change_several",
        "PUT",
        f"{ALERTS_AT}/status",
        ("status", "iids", "iids[]", "filter", "cursor"),
    ),
    Endpoint(
        "api_v4.alert_lists.of_group",
        "GET",
        "/api/v4/groups/{id}/alert_management_alerts",
        ALERTS_TOGETHER,
    ),
    Endpoint("api_v4.alert_lists.mine", "GET", "/api/v4/alert_management_alerts", ALERTS_TOGETHER),
    Endpoint(
        "api_v4.alert_lists.download_of_group",
        "GET",
        "/api/v4/groups/{id}/alert_management_alerts/export.csv",
        ALERTS_TOGETHER,
    ),
    Endpoint(
        "api_v4.alert_lists.download_mine",
        "GET",
        "/api/v4/alert_management_alerts/export.json",
        ALERTS_TOGETHER,
    ),
    Endpoint("api_v4.alerts.paging", "GET", f"{ALERTS_AT}/{{id}}/paging"),
    Endpoint("api_v4.alerts.escalate", "POST", f"{ALERTS_AT}/{{id}}/escalate"),
    Endpoint("api_v4.alerts.page", "POST", f"{ALERTS_AT}/{{id}}/page", ("user",)),
    Endpoint(
        "api_v4.alerts.snooze",
        "POST",
        f"{ALERTS_AT}/{{id}}/snooze",
        ("duration", "until", "tomorrow"),
    ),
    Endpoint("api_v4.alerts.wake", "POST", f"{ALERTS_AT}/{{id}}/wake"),
    Endpoint("api_v4.alerts.renew", "POST", f"{ALERTS_AT}/{{id}}/renew"),
    Endpoint("api_v4.alert_activity.notes", "GET", f"{ALERTS_AT}/{{id}}/notes", PAGES),
    Endpoint("api_v4.alert_activity.create_note", "POST", f"{ALERTS_AT}/{{id}}/notes", ("body",)),
    Endpoint("api_v4.alert_activity.index", "GET", f"{ALERTS_AT}/{{id}}/activity", PAGES),
    Endpoint("api_v4.alert_activity.occurrences", "GET", f"{ALERTS_AT}/{{id}}/occurrences", PAGES),
    Endpoint(
        "api_v4.registry_repositories.index", "GET", REGISTRY_AT, (*PAGES, "tags", "tags_count")
    ),
    Endpoint(
        "api_v4.registry_repositories.index_of_group",
        "GET",
        "/api/v4/groups/{id}/registry/repositories",
        (*PAGES, "tags", "tags_count"),
    ),
    Endpoint(
        "api_v4.registry_repositories.show",
        "GET",
        "/api/v4/registry/repositories/{id}",
        ("tags", "tags_count"),
    ),
    Endpoint("api_v4.registry_repositories.delete", "DELETE", f"{REGISTRY_AT}/{{id}}"),
    Endpoint("api_v4.registry_repositories.tags", "GET", f"{REGISTRY_AT}/{{id}}/tags", PAGES),
    Endpoint("api_v4.registry_repositories.tag", "GET", f"{REGISTRY_AT}/{{id}}/tags/v1"),
    Endpoint("api_v4.registry_repositories.delete_tag", "DELETE", f"{REGISTRY_AT}/{{id}}/tags/v1"),
    Endpoint(
        "api_v4.registry_repositories.delete_tags",
        "DELETE",
        f"{REGISTRY_AT}/{{id}}/tags",
        ("name_regex_delete", "name_regex", "name_regex_keep", "keep_n", "older_than"),
    ),
    Endpoint(
        "registry_tokens.issue",
        "GET",
        "/jwt/auth",
        ("service", "scope", "account", "client_id", "offline_token"),
    ),
    Endpoint(
        "registry_tokens.issue_for_form",
        "POST",
        "/jwt/auth",
        ("grant_type", "service", "scope", "username", "password", "client_id", "access_type"),
    ),
    Endpoint("registry_tokens.certificates", "GET", "/jwt/certificates"),
    Endpoint("registry_notifications.receive", "POST", "/api/v4/container_registry_event/events"),
)
