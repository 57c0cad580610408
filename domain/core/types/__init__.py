"""Field types and base classes that all interfaces share."""
