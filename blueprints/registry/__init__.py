"""The container registry: its tokens, its notifications, and its page."""
