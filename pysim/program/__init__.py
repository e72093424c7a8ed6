"""What runs: jobs, kernels, warp programs, and the memory that their TBs access."""
