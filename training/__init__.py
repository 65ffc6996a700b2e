"""Training: MaskablePPO over the finite action interface, evaluation, runs. Nothing imports it but the command line."""
