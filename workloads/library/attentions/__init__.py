"""Attention as PyTorch and cuDNN launch it."""
