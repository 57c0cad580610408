"""On-call schedules: rotations by local time, overrides, swaps, and who is on call when."""
