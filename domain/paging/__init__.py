"""Everything between an alert and a page: schedules, policies, silences, contacts, messages."""
