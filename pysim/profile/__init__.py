"""Profiles of other tools: what a run that was measured would take under other schemes."""

from .profile import Profile, WhatIf, from_profile

__all__ = ["Profile", "WhatIf", "from_profile"]
