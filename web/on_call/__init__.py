"""What pages, API and commands share about on-call schedules."""
