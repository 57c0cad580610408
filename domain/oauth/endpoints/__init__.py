"""Endpoints beside the token endpoint, one file each."""
