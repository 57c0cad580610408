"""On-call schedules: rotations in local time, overrides, swaps, and the resulting shifts."""
