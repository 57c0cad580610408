"""Sudo: the personal token of an administrator acts as another user, as in GitLab's API."""
