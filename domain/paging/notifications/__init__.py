"""Sends pages to the contacts of recipients: batched, in order, and at least once."""
