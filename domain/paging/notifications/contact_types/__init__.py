"""Types of contacts, one module each, which parse addresses and send messages."""
