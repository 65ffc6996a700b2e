"""Builds the fixed suite ``dynsteer-509``: which recipes give the table of DynSTEER's appendix A. Hidden side.

``python -m dynsteer_gym.envs.sandbox.building`` writes the manifest; the same code gives the same manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from random import Random

from dynsteer_gym.envs.sandbox.draw import Taken
from dynsteer_gym.envs.sandbox.instance import VARIANTS, Instance, content_hash
from dynsteer_gym.envs.sandbox.playing import solved, user_turns
from dynsteer_gym.envs.sandbox.recipes import TOOL_RANGE, Recipe, family_split, fields_of, possible_topics, realise, scrambles
from dynsteer_gym.envs.sandbox.scenarios import FAMILIES

__all__ = ["MANIFEST", "NAME", "build", "suite_hash"]

NAME = "dynsteer-509"
VERSION = "1.0.0"
MANIFEST = Path(__file__).with_name("dynsteer-509.json")
_DOMAINS = {"calendar": (112, 3.4), "messaging": (136, 2.9), "contacts": (98, 2.6), "finance": (84, 4.1), "retrieval": (79, 3.2)}
"""Scenarios and mean user turns by domain."""
_VARIANTS = {"canonical": 127, "distraction": 158, "scrambled": 142, "insufficient": 82}
_MINEFIELDS = 704
_TOOLS_MEAN = 12.4
_MOST_TURNS = 8
_MOST_CALLS = 110
_TRIES = 4_000


def _spread(total: int, shares: Sequence[float]) -> list[int]:
    """A total in parts near their shares: largest remainders first."""
    whole = [int(total * share) for share in shares]
    rest = sorted(range(len(shares)), key=lambda place: whole[place] - total * shares[place])
    for place in rest[: total - sum(whole)]:
        whole[place] += 1
    return whole


def _turns(count: int, mean: float, chooser: Random) -> list[int]:
    """User turns of a domain's scenarios: 1 to 8, with the mean."""
    weights = [0.45**abs(turns - mean) + 0.03 for turns in range(1, _MOST_TURNS + 1)]
    found = [1, _MOST_TURNS, *chooser.choices(range(1, _MOST_TURNS + 1), weights, k=count - 2)]
    while sum(found) != round(count * mean):
        step = 1 if sum(found) < round(count * mean) else -1
        place = chooser.randrange(2, count)
        if 1 <= found[place] + step <= _MOST_TURNS:
            found[place] += step
    chooser.shuffle(found)
    return found


def _tools(chooser: Random) -> dict[str, list[int]]:
    """Tools on offer by domain, each range used to both ends, with the mean over all."""
    found = {}
    for domain, (count, _) in _DOMAINS.items():
        low, high = TOOL_RANGE[domain]
        found[domain] = [low, high, *[chooser.randint(low, high) for _ in range(count - 2)]]
    wanted = round(_TOOLS_MEAN * sum(_VARIANTS.values()))
    while (total := sum(map(sum, found.values()))) != wanted:
        domain = chooser.choice(list(found))
        place = chooser.randrange(2, len(found[domain]))
        number = found[domain][place] + (1 if total < wanted else -1)
        if TOOL_RANGE[domain][0] <= number <= TOOL_RANGE[domain][1]:
            found[domain][place] = number
    for numbers in found.values():
        chooser.shuffle(numbers)
    return found


def _slots(chooser: Random) -> Iterator[tuple[str, str, int, int]]:
    """Domain, variant, user turns and tools of each scenario."""
    tools = _tools(chooser)
    left = dict(_VARIANTS)
    scenarios = sum(_VARIANTS.values())
    for place, (domain, (count, mean)) in enumerate(_DOMAINS.items()):
        last = place == len(_DOMAINS) - 1
        shares = [number / scenarios for number in _VARIANTS.values()]
        parts = list(left.values()) if last else _spread(count, shares)
        for variant, number in zip(_VARIANTS, parts, strict=True):
            left[variant] -= number
        variants = [variant for variant, number in zip(_VARIANTS, parts, strict=True) for _ in range(number)]
        chooser.shuffle(variants)
        turns = _turns(count, mean, chooser)
        # Where something is missing the user is asked, which takes two turns.
        short = [at for at in range(count) if variants[at] == "insufficient" and turns[at] < 2]
        for at in short:
            other = next(at for at in range(count) if variants[at] != "insufficient" and turns[at] == 2)
            turns[at], turns[other] = turns[other], turns[at]
        yield from zip([domain] * count, variants, turns, tools[domain], strict=True)


def _recipe(slot: tuple[str, str, int, int], name: str, primary: str, chooser: Random) -> tuple[Recipe, Instance] | None:
    domain, variant, turns, tools = slot
    recipe = Recipe(
        seed=chooser.getrandbits(40),
        domain=domain,
        families=(primary,),
        variant=variant,
        tools=tools,
        distractors=chooser.randint(3, min(10, tools - 2)) if variant == "distraction" else 0,
        scrambled=scrambles(chooser) if variant == "scrambled" else (),
        missing=chooser.choice(possible_topics(primary)) if variant == "insufficient" else "",
    )
    partners = [other for other in FAMILIES if FAMILIES[other].domain == domain and family_split(other) == family_split(primary)]
    while True:
        try:
            instance = realise(recipe, name, NAME)
        except Taken:
            return None
        needed = user_turns(instance)
        if needed >= turns:
            break
        other = chooser.choice(partners)
        families = (other, *recipe.families) if variant == "insufficient" else (*recipe.families, other)
        recipe = replace(recipe, families=families)
    calls = sum(not isinstance(turn, str) for request in instance.requests for turn in request.plan)
    if needed != turns or calls > _MOST_CALLS or not instance.minefields or not solved(instance):
        return None
    return recipe, instance


def build() -> dict[str, object]:
    """The manifest: name, version, hash, and the recipe of every scenario by its name."""
    chooser = Random(509)
    slots = list(_slots(chooser))
    queue: dict[tuple[str, bool], list[str]] = {}
    found: list[tuple[str, Recipe, Instance]] = []
    numbers = dict.fromkeys(_DOMAINS, 0)
    for slot in slots:
        domain, variant = slot[:2]
        name = f"{domain}-{numbers[domain]:03d}"
        numbers[domain] += 1
        key = (domain, variant == "insufficient")
        own = [family for family in FAMILIES if FAMILIES[family].domain == domain]
        own = [family for family in own if not key[1] or possible_topics(family)]
        waiting = queue.setdefault(key, [])
        for attempt in range(_TRIES):
            if not waiting or attempt % 200 == 199:
                waiting += chooser.sample(own, len(own))  # Every family in turn; one that does not fit here waits.
            primary = waiting[attempt % len(waiting)]
            made = _recipe(slot, name, primary, chooser)
            if made is not None:
                waiting.remove(primary)
                found.append((name, *made))
                break
        else:
            raise RuntimeError(f"no scenario found for {slot}")
    recipes = _mined(found)
    return {
        "name": NAME,
        "version": VERSION,
        "hash": suite_hash([realise(recipe, name, NAME) for name, recipe in recipes.items()]),
        "scenarios": {name: fields_of(recipe) for name, recipe in recipes.items()},
    }


def _mined(found: Sequence[tuple[str, Recipe, Instance]]) -> dict[str, Recipe]:
    """One minefield each, and a second for as many as it takes."""
    counts = {name: 1 for name, _, _ in found}
    order = sorted(found, key=lambda item: blake2b(item[0].encode(), digest_size=8).digest())
    for name, _, instance in order:
        if sum(counts.values()) < _MINEFIELDS and len({mine.kind for mine in instance.minefields or ()}) > 1:
            counts[name] += 1
    return {name: replace(recipe, minefields=counts[name]) for name, recipe, _ in found}


def suite_hash(instances: Sequence[Instance]) -> str:
    """A digest of all scenarios of a suite, hidden side included."""
    digest = blake2b(digest_size=16)
    for instance in instances:
        digest.update(content_hash(instance).encode())
    return digest.hexdigest()


def main() -> None:
    """Writes the manifest."""
    assert set(_VARIANTS) == set(VARIANTS)
    manifest = build()
    lines = [f"{json.dumps(name)}: {json.dumps(recipe)}" for name, recipe in manifest.pop("scenarios").items()]  # type: ignore[attr-defined]
    head = json.dumps(manifest)[:-1]
    MANIFEST.write_text(f'{head}, "scenarios": {{\n' + ",\n".join(lines) + "\n}}\n")
    print(f"{MANIFEST}: {len(lines)} scenarios, hash {manifest['hash']}")


if __name__ == "__main__":
    main()
