"""Pages for on-call schedules."""
