"""Worlds: they know nothing of evaluation, judges or rewards."""
