"""How many random cases hypothesis makes: 100 a test, or what a profile says (``make oracle``)."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("jobs", max_examples=10_000, deadline=None)
