"""Checkpoints of a training run: written whole or not at all, good for a bit-exact continuation.

The envs' states are written by their own processes while the learner updates the model; the checkpoint itself names
them and is put in its place last, so that a kill at any moment leaves the earlier one whole.
"""

from __future__ import annotations

import io
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dynsteer_gym.errors import ConfigurationError

__all__ = ["HELD_APART", "Checkpoint", "load_checkpoint", "restore_generators"]

_NAME = "checkpoint.pkl"
HELD_APART = ("_last_obs", "_last_original_obs", "_last_episode_starts")
"""Attributes of an SB3 model that its own file need not hold: the last observations of all envs."""


class Checkpoint:
    """Writes one checkpoint after another."""

    def __init__(self, folder: Path, envs: Any) -> None:
        """Starts.

        Args:
            folder: The run's folder.
            envs: The training envs.
        """
        self._folder = folder
        self._envs = envs
        self._number = len(list(folder.glob("envs-*.pkl")))
        self._paths: list[str] = []

    def begin(self) -> None:
        """After a rollout: the envs' processes begin to write."""
        self._number += 1
        self._paths = [str(self._folder / f"envs-{self._number}-{lane}.pkl") for lane in range(self._envs.lanes)]
        self._envs.begin_save(self._paths)

    def finish(self, model: Any, books: Any, config: str) -> None:
        """After the update that used the rollout: the model, the generators and the run's books.

        Args:
            model: The SB3 model.
            books: What the run itself keeps.
            config: The configuration as JSON.
        """
        masks = self._envs.end_save()
        buffer = io.BytesIO()
        model.save(buffer, exclude=HELD_APART)
        state = {
            "model": buffer.getvalue(),
            "envs": [os.path.basename(path) for path in self._paths],
            "masks": masks,
            "last_obs": model._last_obs,
            "last_episode_starts": model._last_episode_starts,
            "torch": torch.get_rng_state(),
            "numpy": np.random.get_state(),
            "python": random.getstate(),
            "books": books,
            "config": config,
        }
        draft = self._folder / f".{_NAME}.new"
        with open(draft, "wb") as file:
            pickle.dump(state, file, protocol=pickle.HIGHEST_PROTOCOL)
        os.replace(draft, self._folder / _NAME)
        for old in self._folder.glob("envs-*.pkl"):
            if old.name not in state["envs"]:
                old.unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> dict[str, Any] | None:
    """Reads a checkpoint, or ``None`` where the folder holds none.

    Only load checkpoints that you wrote: the file is a pickle.

    Raises:
        ConfigurationError: The file is no whole checkpoint, or the envs' files that it names are gone.
    """
    target = folder / _NAME
    if not target.exists():
        return None
    try:
        with open(target, "rb") as file:
            state = pickle.load(file)
        missing = [name for name in state["envs"] if not (folder / name).exists()]
    except Exception as error:  # A pickle can fail in any way.
        raise ConfigurationError(f"{target} is no checkpoint of a training run ({type(error).__name__}); start a new run") from error
    if missing:
        raise ConfigurationError(f"{target} needs {', '.join(missing)}, and they are gone; start a new run")
    return state


def restore_generators(state: dict[str, Any]) -> None:
    """Puts the global generators of torch, numpy and Python back."""
    torch.set_rng_state(state["torch"])
    np.random.set_state(state["numpy"])
    random.setstate(state["python"])
