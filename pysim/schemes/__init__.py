"""Scheduling schemes: their edges, what they admit, where TBs wait, and what their hardware costs."""
