"""Maintenance of stored data: pruning, folded names, re-encryption under a new key."""
