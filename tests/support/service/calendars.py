"""Calendars in the iCalendar format."""


def build_calendar(*events: str, before: str = "") -> bytes:
    """Return a calendar; each event is the lines between BEGIN and END."""
    parts = (
        f"BEGIN:VEVENT\n{'' if 'UID:' in each else f'UID:{number}{chr(10)}'}{each}\nEND:VEVENT\n"
        for number, each in enumerate(events)
    )
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:test\n{before}{''.join(parts)}END:VCALENDAR\n"
    return text.replace("\n", "\r\n").encode()
