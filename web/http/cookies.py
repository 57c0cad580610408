"""Cookie names with the prefixes that browsers enforce."""


def build_cookie_name(name: str, base_url: str) -> str:
    """Return the name of a cookie for a base URL.

    Under https, browsers reject prefixed cookies that were set without https or by a sibling host
    (RFC 6265bis section 4.1.3). `__Host-` cookies apply to a whole host, so a service under a path
    uses `__Secure-`.
    """
    scheme, _, rest = base_url.partition("://")
    if scheme != "https":
        return name
    has_path = bool(rest.partition("/")[2])
    return f"__Secure-{name}" if has_path else f"__Host-{name}"
