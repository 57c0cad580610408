"""Who may do what: roles, permissions, and the actions that check them."""
