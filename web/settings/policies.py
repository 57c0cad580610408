"""The domain's policies from the settings."""

from datetime import date, timedelta
from urllib.parse import urlsplit

from domain.accounts.factors.requirement import SecondFactorRule
from domain.accounts.passwords import HashCost, PasswordRules
from domain.accounts.sign_up import DOMAINS, OFF, SignUpPolicy
from domain.accounts.signing_in.actions import SignInLimits
from domain.alerts.formats.base import Format, Reading
from domain.oauth.context import (
    DevicePolicy,
    OAuthPolicy,
    PasswordPolicy,
    PushPolicy,
    RegistrationPolicy,
)
from domain.oauth.personal_tokens.lifetimes import TokenLifetimes
from domain.registry.client import RegistryPolicy
from domain.registry.tokens import TokenPolicy
from domain.releases.schedule import BY_ID
from domain.releases.version import parse_release
from domain.repositories.program import Git
from web.settings.reader import Settings


def password_rules(settings: Settings) -> PasswordRules:
    """Return the rules for passwords under these settings."""
    return PasswordRules(minimum=settings.password_min_length, cost=hash_cost(settings))


def hash_cost(settings: Settings) -> HashCost:
    """Return the Argon2id parameters under these settings."""
    return HashCost(
        memory_kib=settings.password_hash_memory_kib, passes=settings.password_hash_passes
    )


def reading(current: Settings) -> Reading:
    """Return the policy for reading alert bodies."""
    return Reading(
        nesting_limit=current.alert_nesting_limit,
        automatic_fingerprint=current.generic_alert_fingerprinting,
    )


def body_limit(current: Settings, body_format: Format) -> int:
    """Return how many bytes a body of a format may not reach."""
    if body_format.takes_groups:
        return current.metrics_body_limit_bytes
    return current.alert_body_limit_bytes


def second_factor_rule(current: Settings) -> SecondFactorRule:
    """Return who has to have a second factor."""
    begins = current.second_factor_required_from
    return SecondFactorRule(
        whom=current.second_factor_required, begins=date.fromisoformat(begins) if begins else None
    )


def sign_up_policy(current: Settings) -> SignUpPolicy:
    """Return who may make an account: nobody without e-mail, or with domains that are none."""
    domains = frozenset(current.sign_up_email_domains.split(", ")) - {""}
    works = bool(current.mail_url) and (bool(domains) or current.sign_up != DOMAINS)
    return SignUpPolicy(
        mode=current.sign_up if works else OFF,
        domains=domains,
        takes_invited=current.invitations_create_accounts,
    )


def oauth_policy(current: Settings) -> OAuthPolicy:
    """Return the policy of the authorization server."""
    return OAuthPolicy(
        issuer=current.base_url,
        access_token_lifetime=timedelta(seconds=current.access_token_lifetime_seconds),
        id_token_lifetime=timedelta(seconds=current.id_token_lifetime_seconds),
        code_lifetime=timedelta(seconds=current.authorization_code_lifetime_seconds),
        require_https_redirect_uris=current.require_https_redirect_uris,
        refresh_replay=timedelta(seconds=current.refresh_replay_seconds),
        devices=_device_policy(current),
        passwords=PasswordPolicy(
            is_offered=current.password_authentication_enabled_for_git,
            works_without_client=current.password_grant_without_client,
            limits=sign_in_limits(current),
            second_factor=second_factor_rule(current),
        ),
        pushed_requests=PushPolicy(
            lifetime=timedelta(seconds=current.pushed_request_lifetime_seconds),
            is_required=current.require_pushed_authorization_requests,
        ),
        registration=RegistrationPolicy(
            is_offered=current.dynamic_client_registration,
            is_open=current.open_client_registration,
        ),
        private_addresses=current.outgoing_private_addresses,
    )


def _device_policy(current: Settings) -> DevicePolicy:
    return DevicePolicy(
        is_offered=current.oauth2_device_grant_flow,
        code_lifetime=timedelta(seconds=current.device_code_lifetime_seconds),
        poll_interval=current.device_poll_interval_seconds,
        guesses_per_user=current.user_code_attempts_per_user,
        guesses_per_address=current.user_code_attempts_per_address,
        guesses_in_all=current.user_code_attempts_in_all,
        guess_window=timedelta(seconds=current.user_code_attempts_window_seconds),
    )


def token_lifetimes(current: Settings) -> TokenLifetimes:
    """Return the lifetimes of access tokens: the running release says whether all of them end."""
    change = BY_ID["tokens-without-expiry"]
    return TokenLifetimes.of(
        timedelta(days=current.personal_access_token_lifetime_days),
        may_never_end=not change.applies_in(parse_release(current.release)),
    )


def git(current: Settings) -> Git:
    """Return Git, and where the repositories lie."""
    return Git(
        program=current.git_program,
        root=current.repositories_path,
        patience=current.git_idle_timeout_seconds,
    )


def sign_in_limits(current: Settings) -> SignInLimits:
    """Return the limits on sign-in attempts."""
    return SignInLimits(
        per_account=current.sign_in_attempts_per_account,
        per_address=current.sign_in_attempts_per_address,
        second_factor_per_account=current.second_factor_attempts_per_account,
        window=timedelta(seconds=current.sign_in_attempts_window_seconds),
        cost=hash_cost(current),
    )


def registry_policy(current: Settings) -> RegistryPolicy:
    """Return where the container registry is, and what its tokens have in common."""
    return RegistryPolicy(
        host=urlsplit(current.registry_url).netloc or None,
        api_url=current.registry_api_url or current.registry_url,
        tokens=TokenPolicy(
            issuer=current.base_url,
            lifetime=timedelta(seconds=current.registry_token_lifetime_seconds),
        ),
        trusted_ca_file=current.trusted_ca_file,
    )
