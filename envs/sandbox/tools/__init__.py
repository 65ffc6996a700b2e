"""The tools of the built-in world: typed functions over a phone; schema and validation come from pydantic."""

from dynsteer_gym.envs.sandbox.tooling import ToolBox
from dynsteer_gym.envs.sandbox.tools import extras, finance, organiser, phone, places

__all__ = ["PHONE", "TOOLS"]

TOOLS = ToolBox(*phone.FUNCTIONS, *organiser.FUNCTIONS, *finance.FUNCTIONS, *places.FUNCTIONS, *extras.FUNCTIONS)
"""All tools by name, each built when it is first used."""
PHONE = tuple(function.__name__ for function in phone.FUNCTIONS)
"""The names of the phone's own tools."""
