"""What is known of a job without a run: lower bounds, estimates, and the traffic that it causes."""
