"""The report: one HTML file that shows results and needs no network."""
