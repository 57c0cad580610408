"""The container registry: permissions, tokens, notifications and removals."""
