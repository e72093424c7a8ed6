"""Engines: each launches workers for the missing points of a folder, and believes only its files."""
