"""Errors of the package. User errors carry one clear line; an InternalError is a bug of ours."""

from __future__ import annotations


class SimError(Exception):
    """Base of all errors of this package."""


class ConfigError(SimError):
    """A parameter, device, scheme or option is unknown or out of range."""


class WorkloadError(SimError):
    """A kernel, tensor or job cannot be run."""


class InputError(WorkloadError):
    """A user names what cannot be made or read: a workload or its arguments, a trace, a result file."""


class OutputError(WorkloadError):
    """A file is there already, or cannot be written."""


class DependenceError(SimError):
    """The oracle saw a true dependence broken, or the dependences have a cycle."""


class DeadlockError(SimError):
    """Nothing can make progress any more."""


class InternalError(SimError):
    """A bug in the simulator: please report it."""
