"""The endpoint URLs that the pages of an application show."""

from web.services import settings


def endpoints() -> dict[str, str]:
    """Return the enabled endpoints by label."""
    base, has_devices = settings().base_url, settings().oauth2_device_grant_flow
    return {
        "Everything a client library needs": f"{base}/.well-known/oauth-authorization-server",
        "Authorization": f"{base}/oauth/authorize",
        "Tokens": f"{base}/oauth/token",
        **({"Devices": f"{base}/oauth/authorize_device"} if has_devices else {}),
        "Revocation": f"{base}/oauth/revoke",
        "Token info": f"{base}/oauth/token/info",
    }
