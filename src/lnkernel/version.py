"""The version of the library, in the one place from which the build reads it."""

__version__ = "0.1.0"
