"""From stage records, stop and native score to one number and its components (the method's RL semantics)."""

from dynsteer_gym.rewards.config import REWARD_PRESETS, RewardConfig
from dynsteer_gym.rewards.function import RewardFunction

__all__ = ["REWARD_PRESETS", "RewardConfig", "RewardFunction"]
