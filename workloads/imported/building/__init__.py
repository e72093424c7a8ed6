"""Kernels of a recorded graph; needs no PyTorch."""
