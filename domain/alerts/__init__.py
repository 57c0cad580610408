"""What monitoring tools report: read, grouped, resolved and shown."""
