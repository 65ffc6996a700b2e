"""Judges: they score what a stage's evidence shows, on four dimensions, in three tiers (DynSTEER section 3.4)."""
