"""Definitions of all settings with name, kind, default and description.

The environment variable of a setting is its name in upper case. `web/settings/host_definitions.py`
contains the settings of the host.
"""

from dataclasses import dataclass

from web.settings import kinds
from web.settings.fields import (
    define_fixed_setting,
    define_live_setting,
    define_secret,
    define_switch,
)
from web.settings.host_definitions import HostSettings

_MIB = 1024 * 1024
_DAY = 86_400
_YEAR = 365 * _DAY


@dataclass(frozen=True, kw_only=True)
class Settings(HostSettings):
    """Validated settings of an installation."""

    heartbeat_rate_limit: str = define_live_setting(
        "300/minute", kinds.build_rate_kind(), "Rate limit for pings to the URL of one heartbeat."
    )
    heartbeat_address_rate_limit: str = define_live_setting(
        "6000/minute",
        kinds.build_rate_kind(),
        "Rate limit for pings to heartbeats from one IP address.",
    )
    heartbeat_body_limit_bytes: int = define_live_setting(
        10_000,
        kinds.build_whole_number_kind(0, _MIB, "bytes"),
        "Maximum number of bytes of a ping's body that are kept in the log of the heartbeat.",
    )
    heartbeat_log_keep_count: int = define_live_setting(
        100,
        kinds.build_whole_number_kind(10, 10_000),
        "Number of pings kept in the log of a heartbeat.",
    )
    session_lifetime_seconds: int = define_fixed_setting(
        14 * _DAY,
        kinds.build_whole_number_kind(60, _YEAR, "seconds"),
        "Lifetime of a session.",
    )
    administrator_proof_seconds: int = define_fixed_setting(
        900,
        kinds.build_whole_number_kind(60, _DAY, "seconds"),
        "Time after a sign-in in which an administrator can use the administration, manage "
        "members, perform actions of owners, create tokens and grant admin_mode. Afterwards, the "
        "administrator must sign in again for these changes.",
    )
    password_min_length: int = define_live_setting(
        12, kinds.build_whole_number_kind(8, 128, "characters"), "Minimum length of a new password."
    )
    sign_up: str = define_live_setting(
        "off",
        kinds.build_choice_kind("off", "domains", "approval", "open"),
        "Self-service registration: off, only for email addresses in SIGN_UP_EMAIL_DOMAINS, with "
        "approval by an administrator, or open to everyone. Requires MAIL_URL.",
    )
    sign_up_email_domains: str = define_live_setting(
        "",
        kinds.build_email_domains_kind(),
        "Email domains from which users can sign up. If empty, all domains are allowed.",
    )
    invitations_create_accounts: bool = define_switch(
        "Allow people who are invited to a project or group to create an account, regardless of "
        "SIGN_UP.",
        on=False,
    )
    second_factor_required: str = define_live_setting(
        "nobody",
        kinds.build_choice_kind("nobody", "administrators", "everybody"),
        "Users who must have a second factor: an authenticator app or a passkey. Until these "
        "users set up a second factor, pages redirect them to the security settings, and the "
        "password grant fails.",
    )
    second_factor_required_from: str = define_live_setting(
        "",
        kinds.build_day_kind(),
        "Day (UTC) from which SECOND_FACTOR_REQUIRED applies. Until then, users see a notice on "
        "each page. If empty, it applies immediately.",
    )
    deactivate_after_days: int = define_live_setting(
        0,
        kinds.build_zero_or_whole_number_kind(30, 3_650, "days"),
        "Number of days without a sign-in or use of a token after which an account is "
        "deactivated; 0 turns this off.",
    )
    password_hash_memory_kib: int = define_fixed_setting(
        65_536,
        kinds.build_whole_number_kind(19_456, 4_194_304, "KiB"),
        "Memory cost of password hashing. Each concurrent sign-in needs this much memory.",
    )
    password_hash_passes: int = define_fixed_setting(
        3,
        kinds.build_whole_number_kind(2, 100),
        "Time cost of password hashing. Hashes with another cost are replaced at the next sign-in.",
    )
    sign_in_attempts_per_account: int = define_live_setting(
        10,
        kinds.build_whole_number_kind(1, 10_000),
        "Maximum number of failed sign-ins to an account within the window. Further attempts are "
        "blocked.",
    )
    sign_in_attempts_per_address: int = define_live_setting(
        30,
        kinds.build_whole_number_kind(1, 100_000),
        "Maximum number of failed sign-ins from an IP address within the window. The address is "
        "then blocked.",
    )
    second_factor_attempts_per_account: int = define_live_setting(
        10,
        kinds.build_whole_number_kind(1, 10_000),
        "Maximum number of wrong codes or passkeys for an account within the window. Further "
        "attempts are blocked.",
    )
    sign_in_attempts_window_seconds: int = define_live_setting(
        600,
        kinds.build_whole_number_kind(1, _DAY, "seconds"),
        "Window for counting failed sign-ins.",
    )

    access_token_lifetime_seconds: int = define_live_setting(
        7_200, kinds.build_whole_number_kind(1, _YEAR, "seconds"), "Lifetime of an access token."
    )
    id_token_lifetime_seconds: int = define_live_setting(
        3_600, kinds.build_whole_number_kind(120, _DAY, "seconds"), "Lifetime of an ID token."
    )
    authorization_code_lifetime_seconds: int = define_live_setting(
        600, kinds.build_whole_number_kind(1, 600, "seconds"), "Lifetime of an authorization code."
    )
    refresh_replay_seconds: int = define_live_setting(
        10,
        kinds.build_whole_number_kind(0, 60, "seconds"),
        "Time during which a used refresh token returns the same new tokens, for clients that "
        "refresh in two places at the same time or lose a response. Later reuse is treated as "
        "theft. 0 turns this off.",
    )
    pushed_request_lifetime_seconds: int = define_live_setting(
        90,
        kinds.build_whole_number_kind(5, 600, "seconds"),
        "Lifetime of a pushed authorization request (RFC 9126).",
    )
    require_pushed_authorization_requests: bool = define_switch(
        "Accept only pushed authorization requests (RFC 9126).", on=False
    )
    dynamic_client_registration: bool = define_switch(
        "Allow users to register clients with a token that has the api scope (RFC 7591).", on=False
    )
    open_client_registration: bool = define_switch(
        "Allow anyone to register clients without a token (RFC 7591).", on=False
    )
    client_registration_rate_limit: str = define_live_setting(
        "20/hour",
        kinds.build_rate_kind(),
        "Rate limit for client registrations from one IP address.",
    )
    oauth2_device_grant_flow: bool = define_switch(
        "Enable the device authorization grant (RFC 8628), which was introduced in release 17.2 "
        "and is on by default from 17.3.",
        on=True,
    )
    device_code_lifetime_seconds: int = define_live_setting(
        300, kinds.build_whole_number_kind(1, 1_800, "seconds"), "Lifetime of a device code."
    )
    device_poll_interval_seconds: int = define_live_setting(
        5,
        kinds.build_whole_number_kind(1, 60, "seconds"),
        "Minimum interval between polls by a device.",
    )
    user_code_attempts_per_user: int = define_live_setting(
        10,
        kinds.build_whole_number_kind(1, 10_000),
        "Maximum number of wrong device codes from a user within the window. The user is then "
        "blocked.",
    )
    user_code_attempts_per_address: int = define_live_setting(
        30,
        kinds.build_whole_number_kind(1, 100_000),
        "Maximum number of wrong device codes from an IP address within the window. The address is "
        "then blocked.",
    )
    user_code_attempts_in_all: int = define_live_setting(
        1_000,
        kinds.build_whole_number_kind(1, 10_000_000),
        "Maximum number of wrong device codes from all users within the window. All users are then "
        "blocked.",
    )
    user_code_attempts_window_seconds: int = define_live_setting(
        600,
        kinds.build_whole_number_kind(1, _DAY, "seconds"),
        "Window for counting wrong device codes.",
    )
    password_authentication_enabled_for_git: bool = define_switch(
        "Enable the password grant of OAuth. The name is GitLab's. The setting has no effect on "
        "Git, which only accepts access tokens.",
        on=True,
    )
    password_grant_without_client: bool = define_switch(
        "Allow the password grant without an application. A username and a password are then "
        "sufficient for a token with the api scope, or with the requested scopes. Clients written "
        "for GitLab rely on this.",
        on=True,
    )
    personal_access_token_lifetime_days: int = define_live_setting(
        365,
        kinds.build_whole_number_kind(1, 3_650, "days"),
        "Maximum lifetime of a personal, project or group access token. Tokens without an expiry "
        "date get this lifetime, or a year if that is shorter. Before release 16.0, such tokens "
        "never expire unless the maximum is less than 365 days.",
    )
    expiring_token_notice_days: int = define_live_setting(
        7,
        kinds.build_whole_number_kind(0, 60, "days"),
        "Number of days before the expiry of an access token on which its owner is notified by "
        "email. 0 turns the notices off.",
    )
    require_https_redirect_uris: bool = define_switch(
        "Reject new redirect URIs with http, except for loopback addresses.", on=False
    )

    alert_body_limit_bytes: int = define_live_setting(
        _MIB,
        kinds.build_whole_number_kind(1_024, 64 * _MIB, "bytes"),
        "Size limit for the body of a request to an HTTP endpoint. A body of exactly this size is "
        "rejected.",
    )
    metrics_body_limit_bytes: int = define_live_setting(
        8 * _MIB,
        kinds.build_whole_number_kind(1_024, 64 * _MIB, "bytes"),
        "Size limit for the body of a request to an Alertmanager endpoint. A body of exactly this "
        "size is rejected.",
    )
    alert_nesting_limit: int = define_live_setting(
        100,
        kinds.build_whole_number_kind(1, 500, "levels"),
        "Maximum nesting depth of the body of a request to an integration.",
    )
    alert_rate_limit: str = define_live_setting(
        "", kinds.build_rate_kind(), "Rate limit for requests to an integration."
    )
    events_address_rate_limit: str = define_live_setting(
        "6000/minute",
        kinds.build_rate_kind(),
        "Rate limit for requests from one IP address to /v2/enqueue.",
    )
    longest_silence_days: int = define_live_setting(
        90, kinds.build_whole_number_kind(1, 366, "days"), "Maximum duration of a silence."
    )
    api_rate_limit: str = define_live_setting(
        "2000/minute",
        kinds.build_rate_kind(),
        "Rate limit for API requests from a user, or from an IP address without a valid token.",
    )
    search_rate_limit: int = define_live_setting(
        0,
        kinds.build_whole_number_kind(0, 1_000_000, "searches"),
        "Maximum number of API requests with the `search` parameter, per user per minute. 0 turns "
        "this off.",
    )
    users_api_rate_limit: str = define_live_setting(
        "300/minute from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for lists of users, per user or IP address.",
    )
    user_api_rate_limit: str = define_live_setting(
        "300/minute from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for endpoints of a single user (`/users/:id` and its subresources), per "
        "user or IP address.",
    )
    projects_api_rate_limit: str = define_live_setting(
        "2000/10 minutes from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for lists of projects, per user.",
    )
    anonymous_projects_api_rate_limit: str = define_live_setting(
        "400/10 minutes from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for requests that list projects without a token, per IP address.",
    )
    project_api_rate_limit: str = define_live_setting(
        "400/minute from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for a single project, per user or IP address.",
    )
    groups_api_rate_limit: str = define_live_setting(
        "200/minute from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for lists of groups, per user or IP address.",
    )
    group_api_rate_limit: str = define_live_setting(
        "400/minute from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for a single group, per user or IP address.",
    )
    group_projects_api_rate_limit: str = define_live_setting(
        "600/minute from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for lists of a group's projects, per user or IP address.",
    )
    members_api_rate_limit: str = define_live_setting(
        "200/minute from 18.0",
        kinds.build_rate_from_release_kind(),
        "API rate limit for requests about members of projects and groups, per user or IP address.",
    )
    release_check_rate_limit: str = define_live_setting(
        "120/minute",
        kinds.build_rate_kind(),
        "Rate limit for the release checker, per user or IP address.",
    )
    git_rate_limit: str = define_live_setting(
        "3000/minute",
        kinds.build_rate_kind(),
        "Rate limit for Git requests from a user, or from an IP address without a valid token.",
    )
    oauth_rate_limit: str = define_live_setting(
        "3000/minute",
        kinds.build_rate_kind(),
        "Rate limit for requests from one IP address to the OAuth endpoints.",
    )
    page_rate_limit: str = define_live_setting(
        "",
        kinds.build_rate_kind(),
        "Rate limit for web pages, per user, or per IP address for visitors who are not signed in.",
    )
    ratelimit_storage_uri: str = define_secret(
        "memory://",
        kinds.build_counter_storage_kind(),
        "Storage of rate limit counters. With memory://, each host counts separately.",
    )
    generic_alert_fingerprinting: bool = define_switch(
        "Group alerts without a fingerprint by their content.", on=True
    )
    late_copy_seconds: int = define_live_setting(
        300,
        kinds.build_whole_number_kind(0, 86_400, "seconds"),
        "Time after a recovery during which a report with an earlier start is treated as a late "
        "copy, which does not open an alert. 0 turns this off.",
    )
    delivery_keep_count: int = define_live_setting(
        1_000,
        kinds.build_whole_number_kind(10, 1_000_000),
        "Number of the newest deliveries that are always kept for each integration.",
    )
    delivery_keep_days: int = define_live_setting(
        30,
        kinds.build_whole_number_kind(1, 3_650, "days"),
        "Retention of older deliveries, beyond the number that is always kept.",
    )
    alert_keep_days: int = define_live_setting(
        0,
        kinds.build_whole_number_kind(0, 3_650, "days"),
        "Retention of resolved alerts with their activity; 0 keeps them forever.",
    )
    refused_delivery_samples_per_minute: int = define_live_setting(
        30,
        kinds.build_whole_number_kind(0, 10_000),
        "Maximum number of rejected deliveries that are stored per minute, integration and status. "
        "Further rejected deliveries are only counted.",
    )

    registry_url: str = define_fixed_setting(
        "", kinds.build_origin_kind(), "URL of the container registry for users."
    )
    registry_api_url: str = define_fixed_setting(
        "",
        kinds.build_origin_kind(),
        "URL at which this service reaches the registry. If empty, it is REGISTRY_URL.",
    )
    registry_notification_secrets: tuple[str, ...] = define_secret(
        (),
        kinds.build_long_secret_list_kind(),
        "Secrets of the registry's notifications. If empty, they are derived from SECRET_KEY.",
    )
    registry_token_lifetime_seconds: int = define_live_setting(
        300, kinds.build_whole_number_kind(60, 3_600, "seconds"), "Lifetime of a registry token."
    )

    audit_event_keep_days: int = define_live_setting(
        365,
        kinds.build_whole_number_kind(1, 36_500, "days"),
        "Retention of audit events. If the setting is changed while the service is running, the "
        "minimum is 30 days.",
        narrower=kinds.build_whole_number_kind(30, 36_500, "days"),
    )
    audit_stream_keep_days: int = define_live_setting(
        14,
        kinds.build_whole_number_kind(1, 90, "days"),
        "Time for which audit events wait for a destination that does not accept them.",
    )
    webhook_delivery_keep_days: int = define_live_setting(
        30,
        kinds.build_whole_number_kind(1, 365, "days"),
        "Retention of the delivery log of webhooks.",
    )
    webhook_pause_days: int = define_live_setting(
        5,
        kinds.build_whole_number_kind(1, 90, "days"),
        "Time without an accepted delivery after which a webhook is paused and the maintainers of "
        "the project get an email.",
    )
    call_keep_days: int = define_live_setting(
        90,
        kinds.build_whole_number_kind(1, 730, "days"),
        "Retention of the counts of API calls by consumer, which show the consumers that a release "
        "affects.",
    )
    call_flush_seconds: int = define_fixed_setting(
        15,
        kinds.build_whole_number_kind(1, 300, "seconds"),
        "Interval at which a web process stores its counts of API calls. A crash loses the counts "
        "of one interval.",
    )
    removal_notice_days: int = define_live_setting(
        30,
        kinds.build_whole_number_kind(0, 60, "days"),
        "Number of days before a release on which owners of tokens and applications are notified "
        "by email of API calls that the release breaks. 0 turns the notices off.",
    )
    mail_url: str = define_secret(
        "",
        kinds.build_mail_url_kind(),
        "SMTP server for email. If empty, no email is sent.",
    )
    mail_from: str = define_fixed_setting(
        "",
        kinds.build_mail_address_kind(),
        "Sender address of emails. If empty, it is gatebell@ with the host of BASE_URL.",
    )

    form_body_limit_bytes: int = define_fixed_setting(
        _MIB,
        kinds.build_whole_number_kind(16_384, 64 * _MIB, "bytes"),
        "Maximum size of other request bodies.",
    )
    release_check_limit_bytes: int = define_live_setting(
        5 * _MIB,
        kinds.build_whole_number_kind(16_384, 64 * _MIB, "bytes"),
        "Maximum size of the input to the release checker.",
    )
    page_size: int = define_live_setting(
        20, kinds.build_whole_number_kind(5, 200), "Number of rows on a page of a list."
    )
    tier: str = define_live_setting(
        "ultimate", kinds.build_choice_kind("free", "premium", "ultimate"), "Feature tier."
    )
    release: str = define_live_setting(
        "18.0",
        kinds.build_release_kind(),
        "Running release, which determines the behavior of the API.",
    )
    release_dates: str = define_live_setting(
        "",
        kinds.build_release_dates_kind(),
        "Dates of releases, for the release schedule, its calendar and the Sunset header.",
    )

    appearance_title: str = define_live_setting(
        "", kinds.build_line_kind(200), "Title above the description on the sign-in page."
    )
    appearance_description: str = define_live_setting(
        "",
        kinds.build_text_kind(4_000),
        "Text on the sign-in page, in Markdown, for example about the purpose of the installation.",
    )
    header_message: str = define_live_setting(
        "", kinds.build_line_kind(500), "Message at the top of every page."
    )
    footer_message: str = define_live_setting(
        "", kinds.build_line_kind(500), "Message at the bottom of every page."
    )

    @property
    def counts_rate_limits_per_host(self) -> bool:
        """True if each host counts rate limits separately, without a shared store."""
        return self.ratelimit_storage_uri == "memory://"
