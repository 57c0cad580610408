"""Details of a single alert, and user actions on it: status changes, assignments and notes."""
