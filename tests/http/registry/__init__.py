"""The container registry on the wire: tokens, notifications, the API and its pages."""
