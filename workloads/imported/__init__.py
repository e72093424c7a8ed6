"""Models of other frameworks as jobs: a recorded graph of operations, and the kernels that they launch."""
