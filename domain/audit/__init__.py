"""The audit log: writing, reading, sealing and pruning of security-relevant events."""
