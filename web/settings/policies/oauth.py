"""Policy of the authorization server, derived from the settings."""

from datetime import timedelta

from domain.oauth.context import (
    DeviceGrantPolicy,
    OAuthPolicy,
    PasswordGrantPolicy,
    PushedRequestPolicy,
    RegistrationPolicy,
)
from web.settings.environment import Settings
from web.settings.policies.accounts import build_second_factor_rule, build_sign_in_limits


def build_oauth_policy(current: Settings) -> OAuthPolicy:
    """Return the lifetimes, limits and enabled features of the authorization server."""
    return OAuthPolicy(
        issuer=current.base_url,
        access_token_lifetime=timedelta(seconds=current.access_token_lifetime_seconds),
        id_token_lifetime=timedelta(seconds=current.id_token_lifetime_seconds),
        code_lifetime=timedelta(seconds=current.authorization_code_lifetime_seconds),
        require_https_redirect_uris=current.require_https_redirect_uris,
        refresh_replay=timedelta(seconds=current.refresh_replay_seconds),
        devices=_build_device_policy(current),
        passwords=PasswordGrantPolicy(
            is_offered=current.password_authentication_enabled_for_git,
            works_without_client=current.password_grant_without_client,
            limits=build_sign_in_limits(current),
            second_factor=build_second_factor_rule(current),
        ),
        pushed_requests=PushedRequestPolicy(
            lifetime=timedelta(seconds=current.pushed_request_lifetime_seconds),
            is_required=current.require_pushed_authorization_requests,
        ),
        registration=RegistrationPolicy(
            is_offered=current.dynamic_client_registration,
            is_open=current.open_client_registration,
        ),
        private_addresses=current.outgoing_private_addresses,
    )


def _build_device_policy(current: Settings) -> DeviceGrantPolicy:
    return DeviceGrantPolicy(
        is_offered=current.oauth2_device_grant_flow,
        code_lifetime=timedelta(seconds=current.device_code_lifetime_seconds),
        poll_interval=current.device_poll_interval_seconds,
        guesses_per_user=current.user_code_attempts_per_user,
        guesses_per_address=current.user_code_attempts_per_address,
        guesses_in_all=current.user_code_attempts_in_all,
        guess_window=timedelta(seconds=current.user_code_attempts_window_seconds),
    )
