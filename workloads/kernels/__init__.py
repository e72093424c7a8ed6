"""Kernel templates: what a launch of a library-like kernel reads, writes and issues, and how it is tiled."""
