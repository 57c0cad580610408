"""What holds pages back: silences, maintenance windows, and alerts that open again and again."""
