"""Apple's ToolSandbox, played turn by turn from a checkout of your own; nothing of it is shipped here."""

from dynsteer_gym.envs.toolsandbox.world import ToolSandboxWorld

__all__ = ["ToolSandboxWorld"]
