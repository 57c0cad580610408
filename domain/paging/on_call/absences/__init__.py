"""Absences of users, holidays of schedules, imported calendars, and conflicts with shifts."""
