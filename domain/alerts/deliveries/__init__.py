"""The delivery log: the requests of senders with their outcomes."""
