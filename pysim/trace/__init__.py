"""SASS traces in the Accel-Sim text format: what the opcodes mean, and the reader."""
