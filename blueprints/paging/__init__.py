"""Paging pages: schedules, policies, silences, contacts and channels."""
