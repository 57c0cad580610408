"""On-call schedules: rotations by wall time, overrides, swaps, and who is on call when."""
