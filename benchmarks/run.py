"""Measures every line of the budget table: the same as ``dynsteer bench``."""

import json

from dynsteer_gym.benchmark import measure

if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
