"""Readers of profiles: Kineto files, plain tables of kernels, PyTorch execution traces."""
