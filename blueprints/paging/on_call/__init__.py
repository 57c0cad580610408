"""Pages of on-call schedules."""
