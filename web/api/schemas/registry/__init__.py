"""The container registry."""
