"""Sends pages to the contacts of recipients, in batches, in order and at least once."""
