"""Full paths, and the chain of groups above one."""


def ancestors(path: str) -> tuple[str, ...]:
    """Return the paths of all groups that a full path lies in, the outermost first.

    `ancestors("acme/shops/eu")` is `("acme", "acme/shops")`.
    """
    parts = path.split("/")
    return tuple("/".join(parts[:length]) for length in range(1, len(parts)))


def parent(path: str) -> str | None:
    """Return the path of the group that a full path lies in, if any."""
    head, _, _ = path.rpartition("/")
    return head or None
