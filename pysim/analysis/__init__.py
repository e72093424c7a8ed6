"""What is known of a job without simulation: lower bounds, estimates, and its memory traffic."""
