"""Convolutions as cuDNN launches them."""
