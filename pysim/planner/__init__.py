"""Searches the plans of a workload, schemes and their settings, for the fastest (``pysim plan``)."""
