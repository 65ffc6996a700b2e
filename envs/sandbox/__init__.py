"""The built-in world: a phone with settings, contacts, messages, reminders and a calendar, and a scripted user."""

from dynsteer_gym.envs.sandbox.env import SandboxEnv

__all__ = ["SandboxEnv"]
