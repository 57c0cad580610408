"""Mutes, which hold pages: silences, maintenance windows, flap detection and incidents."""
