"""What a profile becomes: dependences, sharing of the GPU, replay under each scheme."""
