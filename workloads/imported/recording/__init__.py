"""What needs PyTorch: run a model on tensors without data, and record the operations that it dispatches."""
