"""A rollout buffer that keeps only the candidates that are there, and hands them packed to the policy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer, MaskableRolloutBufferSamples

from dynsteer_gym.envs.discrete import CONTEXT, FEATURES

__all__ = ["Packed", "PackedRolloutBuffer", "pack"]


class Packed(NamedTuple):
    """A batch of observations of the discrete interface without the rows that are not taken.

    Attributes:
        context: Shape ``(batch, CONTEXT)``.
        rows: The candidates of all observations one after another, shape ``(total, FEATURES)``.
        places: Where each candidate stands in the batch, ``observation * size + position``, ascending, shape ``(total,)``.
        counts: How many each observation has, shape ``(batch,)``.
    """

    context: torch.Tensor
    rows: torch.Tensor
    places: torch.Tensor
    counts: torch.Tensor


def pack(observations: torch.Tensor) -> Packed:
    """Packs flat observations, shape ``(batch, CONTEXT + size * FEATURES)``."""
    taken = observations[:, CONTEXT::FEATURES] > 0
    places = taken.reshape(-1).nonzero().squeeze(1)
    rows = observations[:, CONTEXT:].reshape(-1, FEATURES).index_select(0, places)
    return Packed(observations[:, :CONTEXT], rows, places, taken.sum(1))


class PackedRolloutBuffer(MaskableRolloutBuffer):
    """SB3's buffer for masked actions; its samples hold :class:`Packed` observations.

    The taken candidates of an observation stand before the others, as ``DiscreteActions`` writes them and its mask says.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what ``MaskableRolloutBuffer`` takes."""
        super().__init__(*args, **kwargs)
        self.obs_shape = (CONTEXT,)
        self.reset()

    def reset(self) -> None:
        """Empties it."""
        super().reset()
        self._parts: list[NDArray[np.float32]] = []
        self._counts: NDArray[np.int64] = np.zeros((self.buffer_size, self.n_envs), np.int64)

    def add(self, obs: NDArray[np.float32], *args: Any, action_masks: NDArray[np.bool_] | None = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Adds one step of all envs.

        Args:
            obs: Observations, shape ``(n_envs, CONTEXT + size * FEATURES)``.
            *args: The rest as SB3 gives it.
            action_masks: Masks, shape ``(n_envs, size)``.
            **kwargs: The rest as SB3 gives it.
        """
        if action_masks is None:
            raise ValueError("the packed buffer needs action masks")
        rows = obs[:, CONTEXT:].reshape(-1, FEATURES)
        self._parts.append(rows.take(np.flatnonzero(action_masks), axis=0))
        self._counts[self.pos] = action_masks.sum(1)
        super().add(obs[:, :CONTEXT], *args, action_masks=action_masks, **kwargs)

    def get(self, batch_size: int | None = None) -> Any:
        """Minibatches in random order."""
        if not self.generator_ready:
            counts = self._counts.reshape(-1)
            starts = (np.cumsum(counts) - counts).reshape(self._counts.shape)
            self._flat_counts = self._counts.swapaxes(0, 1).reshape(-1)
            self._flat_starts = starts.swapaxes(0, 1).reshape(-1)
            self._rows = torch.from_numpy(np.concatenate(self._parts))
            self._parts = []
        yield from super().get(batch_size)

    def _get_samples(self, batch_inds: NDArray[np.int64], env: Any = None) -> MaskableRolloutBufferSamples:
        counts = self._flat_counts[batch_inds]
        ends = np.cumsum(counts)
        total, begins = np.arange(ends[-1]), ends - counts
        stored = np.repeat(self._flat_starts[batch_inds] - begins, counts) + total
        places = np.repeat(np.arange(len(counts)) * self.mask_dims - begins, counts) + total
        packed = Packed(
            self.to_torch(self.observations[batch_inds]),
            self._rows.index_select(0, torch.from_numpy(stored)).to(self.device),
            self.to_torch(places),
            self.to_torch(counts),
        )
        rest = (
            self.actions[batch_inds],
            self.values[batch_inds].flatten(),
            self.log_probs[batch_inds].flatten(),
            self.advantages[batch_inds].flatten(),
            self.returns[batch_inds].flatten(),
            self.action_masks[batch_inds].reshape(-1, self.mask_dims),
        )
        return MaskableRolloutBufferSamples(packed, *map(self.to_torch, rest))  # type: ignore[arg-type]
