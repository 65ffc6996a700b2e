"""The scenario families of the five domains, hidden side."""

from dataclasses import replace

from dynsteer_gym.envs.sandbox import families as phone
from dynsteer_gym.envs.sandbox.draw import Family
from dynsteer_gym.envs.sandbox.scenarios import calendar, common, contacts, finance, messaging, retrieval

__all__ = ["DOMAINS", "FAMILIES", "calendar", "contacts", "finance", "messaging", "retrieval"]

DOMAINS = ("calendar", "messaging", "contacts", "finance", "retrieval")
"""Calendar and scheduling; messages and notifications; contacts; finance and transactions; information retrieval."""
_ASKING = {"is_on", "where"}


def _domain(family: Family) -> str:
    if family.domain == "settings":
        return "retrieval" if family.name in _ASKING else "messaging"
    return {"planner": "calendar"}.get(family.domain, family.domain)


FAMILIES: dict[str, Family] = {
    name: replace(family, domain=_domain(family))
    for name, family in (*phone.FAMILIES.items(), *common.FAMILIES.items())
    # The clock moves here, and that family's answer is the time at the beginning; those in vain are made by a factor.
    if name != "what_time" and not name.endswith("_in_vain")
}
"""All families by name."""
