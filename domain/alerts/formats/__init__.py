"""Alert formats, each defined in its own module, and a registry of all formats."""
