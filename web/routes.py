"""What the URL map says about names."""

from flask import current_app

from domain.projects.creation import reserved_names as first_parts

#: Names that no route begins with today and that people would still mistake for the service.
_ALSO = frozenset({"-", "admin", "help", "dashboard", "explore", "search", "robots.txt"})


def reserved_names() -> frozenset[str]:
    """Return the names that no top-level group may have, in lower case."""
    return first_parts(rule.rule for rule in current_app.url_map.iter_rules()) | _ALSO
