"""Results as text for terminals and Markdown pages."""
