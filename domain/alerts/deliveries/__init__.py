"""The delivery log: what senders delivered, and what became of it."""
