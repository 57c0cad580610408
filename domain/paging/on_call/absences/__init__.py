"""Absences of users, holidays of schedules, their calendars, and conflicts with shifts."""
