"""The command line: options, the frame of experiment scripts, and the command ``pysim``."""
