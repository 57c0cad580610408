"""Access control: roles, permissions, and the actions that check them."""
