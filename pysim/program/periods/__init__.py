"""Equal periods of a job, such as the layers of a network: likeness, and jobs that hold some."""
