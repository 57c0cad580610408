"""Writes, reads, seals and prunes the audit log of security-relevant events."""
