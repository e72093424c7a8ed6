"""What operators launch: a rule each, in one table."""
