"""Mutes, which hold pages back: silences, maintenance windows, flap detection and incidents."""
