"""A space of Unicode text, for actions and observations of text worlds."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

__all__ = ["UnicodeText"]

_ALPHABET = np.array([*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;!?'\"{}[]()_-\n", "é", "ß", "ø", "中", "🙂"])


class UnicodeText(gym.Space[str]):
    r"""All strings up to a length, whatever their characters.

    Gymnasium's ``Text`` asks for a charset and refuses everything outside it; what language models write has none.
    Asynchronous vector envs need ``shared_memory=False`` with this space, as with any space of their own making.

    >>> UnicodeText().contains("Grüße\\n{}")
    True
    """

    def __init__(self, max_length: int = 1_000_000, seed: int | np.random.Generator | None = None) -> None:
        """Makes the space.

        Args:
            max_length: The most characters of a member, >= 1.
            seed: Of ``sample``.

        Raises:
            ValueError: ``max_length`` is below 1.
        """
        if max_length < 1:
            raise ValueError(f"max_length is at least 1; got {max_length}")
        self.max_length = max_length
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text is no array."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short random string, 0 to 64 characters.

        Args:
            mask: Not used; there for the interface of Gymnasium's spaces.
            probability: Not used, likewise.
        """
        length = int(self.np_random.integers(0, min(64, self.max_length) + 1))
        return "".join(self.np_random.choice(_ALPHABET, length))

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string of at most ``max_length`` characters."""
        return isinstance(x, str) and len(x) <= self.max_length

    def to_jsonable(self, sample_n: Any) -> list[str]:
        """Strings are JSON already."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """Strings are JSON already."""
        return [str(item) for item in sample_n]

    def __repr__(self) -> str:
        return f"UnicodeText(max_length={self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    def __hash__(self) -> int:
        return hash((UnicodeText, self.max_length))
