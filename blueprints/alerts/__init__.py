"""The alert receivers, and the pages that list, show and change alerts."""
