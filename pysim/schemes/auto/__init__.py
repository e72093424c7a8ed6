"""Scheme ``tb_auto``: what waits for what, and how, is decided when a kernel is admitted."""
