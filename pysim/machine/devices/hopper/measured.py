"""Sources that many rows of a GH100 share."""

from __future__ import annotations

MICRO = "measured, h200_micro.json"
ASSUMED = "assumed: nobody published it"
CC90 = "CUDA C Programming Guide, technical specifications of compute capability 9.0"
SHEET = "NVIDIA H100 white paper (2022)"
