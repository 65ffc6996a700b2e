"""Checkpoints of a training run: written whole or not at all, good for a bit-exact continuation."""

from __future__ import annotations

import io
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["load_checkpoint", "save_checkpoint"]

_NAME = "checkpoint.pkl"


def save_checkpoint(folder: Path, model: Any, envs: Any, books: dict[str, Any]) -> None:
    """Writes model, envs in mid-episode, generators and the run's books.

    The file is written beside its place and moved there, so that a kill at any moment leaves the earlier one whole.

    Args:
        folder: The run's folder.
        model: The SB3 model.
        envs: The training envs.
        books: What the run itself keeps (curve, running means).
    """
    buffer = io.BytesIO()
    model.save(buffer)
    state = {
        "model": buffer.getvalue(),
        "envs": envs.state(),
        "last_obs": model._last_obs,
        "last_episode_starts": model._last_episode_starts,
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),
        "python": random.getstate(),
        "books": books,
    }
    target = folder / _NAME
    draft = folder / f".{_NAME}.new"
    with open(draft, "wb") as file:
        pickle.dump(state, file, protocol=pickle.HIGHEST_PROTOCOL)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, target)


def load_checkpoint(folder: Path) -> dict[str, Any] | None:
    """Reads a checkpoint, or ``None`` where the folder holds none.

    Only load checkpoints that you wrote: the file is a pickle.
    """
    target = folder / _NAME
    if not target.exists():
        return None
    with open(target, "rb") as file:
        return pickle.load(file)


def restore_generators(state: dict[str, Any]) -> None:
    """Puts the global generators of torch, numpy and Python back."""
    torch.set_rng_state(state["torch"])
    np.random.set_state(state["numpy"])
    random.setstate(state["python"])
