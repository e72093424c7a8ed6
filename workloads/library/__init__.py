"""Kernels that vendors' libraries launch."""
