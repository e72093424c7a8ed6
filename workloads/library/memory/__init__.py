"""Memory-bound kernels of PyTorch: element-wise, reductions, rows, copies."""
