"""Profiles of other tools: what a run that was measured would take under other schemes."""

from .profile import Profile, from_profile
from .report import WhatIf

__all__ = ["Profile", "WhatIf", "from_profile"]
