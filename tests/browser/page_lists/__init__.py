"""Pages of a subject with something on them, for the walks over every page."""
