"""Names of cookies: what a browser refuses to take from anybody but us."""


def cookie_name(name: str, base_url: str) -> str:
    """Return the name under which a cookie is kept at an address.

    Under https its prefix makes browsers refuse one that was set without https, and by a host
    beside us (RFC 6265bis section 4.1.3). `__Host-` cookies are for a whole host, so a service
    below a path has to do with `__Secure-`.
    """
    scheme, _, rest = base_url.partition("://")
    if scheme != "https":
        return name
    has_path = bool(rest.partition("/")[2])
    return f"__Secure-{name}" if has_path else f"__Host-{name}"
