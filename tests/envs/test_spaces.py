"""The text space."""

import gymnasium as gym
import pytest
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from dynsteer_gym.envs.spaces import UnicodeText


def test_holds_any_text_up_to_its_length():
    space = UnicodeText(5)
    assert space.contains("é\n{}\U0001f642")
    assert not space.contains("123456")
    assert not space.contains(b"12")


def test_samples_are_members_and_follow_the_seed():
    first, second = UnicodeText(40, seed=3), UnicodeText(40, seed=3)
    drawn = [first.sample() for _ in range(20)]
    assert drawn == [second.sample() for _ in range(20)]
    assert all(first.contains(text) for text in drawn)
    assert len(set(drawn)) > 10


def test_works_in_vectors():
    space = UnicodeText()
    batch = batch_space(space, 2)
    assert concatenate(space, ["a", "b"], create_empty_array(space, 2)) == ("a", "b")
    assert list(iterate(batch, ("a", "b"))) == ["a", "b"]


def test_is_no_text_space_and_compares_by_length():
    assert not isinstance(UnicodeText(), gym.spaces.Text)
    assert UnicodeText(3) == UnicodeText(3) != UnicodeText(4)
    with pytest.raises(ValueError, match="at least 1"):
        UnicodeText(0)
