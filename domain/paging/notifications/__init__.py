"""Pages: who is told of alerts by which contact, gathered, in order and at least once."""
