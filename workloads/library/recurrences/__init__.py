"""Recurrent passes as cuDNN launches them."""
