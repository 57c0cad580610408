"""A single alert in detail, and what users do with it: status, assignee and notes."""
