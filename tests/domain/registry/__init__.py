"""The container registry, without an app."""
