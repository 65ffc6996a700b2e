"""Errors that a user of the library can make; what a model writes is never one of them."""

from __future__ import annotations

import logging

__all__ = ["ConfigurationError", "DynSTEERError"]


class DynSTEERError(ValueError):
    """Something that was passed to the library does not hold; the message says what was expected and what came."""


class ConfigurationError(DynSTEERError):
    """A setting is unknown, of the wrong type or out of range."""


logging.getLogger("dynsteer_gym").addHandler(logging.NullHandler())  # A library is silent until asked.
