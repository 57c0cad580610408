"""One alert in detail, and the actions of users on it: status, assignee and notes."""
