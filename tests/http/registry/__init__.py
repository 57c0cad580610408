"""The container registry over HTTP: tokens, notifications, the API and its pages."""
