"""Pages of paging: schedules, policies, silences, contacts and channels."""
