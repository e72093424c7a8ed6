"""What layers of a LLaMA launch beside GEMMs, forward and backward."""
