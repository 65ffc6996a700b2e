"""Compiling a task's public view into a milestone graph (DynSTEER section 3.2)."""
