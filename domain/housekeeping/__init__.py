"""Maintenance of stored data: pruning, folded names, clock corrections and re-encryption."""
