"""What actions can ask their unit of work for, beyond settings (`web/services.py`)."""
