"""The tools of the atlas: places, climate, distances, units. They read; they change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from dynsteer_gym.envs.sandbox.atlas import Place, climate, distance_km, nearest, places
from dynsteer_gym.envs.sandbox.state import Device
from dynsteer_gym.envs.sandbox.tooling import Id, Name, ToolError
from dynsteer_gym.envs.sandbox.tools.organiser import Page, cut
from dynsteer_gym.events import ErrorKind

__all__ = ["FUNCTIONS", "UNITS"]

UNITS = {
    ("kilometre", "mile"): (1 / 1.609344, 0.0),
    ("mile", "kilometre"): (1.609344, 0.0),
    ("metre", "foot"): (1 / 0.3048, 0.0),
    ("foot", "metre"): (0.3048, 0.0),
    ("celsius", "fahrenheit"): (1.8, 32.0),
    ("fahrenheit", "celsius"): (1 / 1.8, -32 / 1.8),
    ("millimetre", "inch"): (1 / 25.4, 0.0),
    ("inch", "millimetre"): (25.4, 0.0),
}
"""Factor and offset by source and target unit."""
Unit = Literal["kilometre", "mile", "metre", "foot", "celsius", "fahrenheit", "millimetre", "inch"]


@dataclass(frozen=True)
class Hit:
    """A place in a list."""

    place_id: str
    name: str
    country: str


class HitPage(NamedTuple):
    """For the return schema of ``list_places``."""

    places: list[Hit]
    page: int
    pages: int


class Climate(NamedTuple):
    """For the return schema of ``get_climate``."""

    temperature_celsius: float
    rain_millimetre: float


def _place(key: str) -> Place:
    for place in places():
        if place.place_id == key:
            return place
    raise ToolError(ErrorKind.NOT_FOUND, f"No place has the id {key[:40]!r}; search for its id first.")


def _hit(place: Place) -> dict[str, str]:
    return {"place_id": place.place_id, "name": place.name, "country": place.country}


def search_places(device: Device, name: Name) -> list[Hit]:
    """Search the places of the atlas by name.

    Args:
        name: Name or part of a name of a city.
    """
    return [_hit(place) for place in places() if name.casefold() in place.name.casefold()]  # type: ignore[misc]


def list_places(device: Device, country: Name, page: Page = 1) -> HitPage:
    """List the places of the atlas in a country, three a page.

    Args:
        country: Name of the country.
        page: Number of the page.
    """
    rows = [_hit(place) for place in places() if place.country.casefold() == country.casefold()]
    return cut(rows, page, "places", 3)  # type: ignore[return-value,arg-type]


def get_place(device: Device, place_id: Id) -> Place:
    """Get a place of the atlas: coordinates, elevation, population, time zone.

    Args:
        place_id: Id of the place.
    """
    return _place(place_id)._asdict()  # type: ignore[return-value]


def get_climate(device: Device, place_id: Id, month: Annotated[int, Field(ge=1, le=12)]) -> Climate:
    """Get the climate of a place in a month: mean temperature and rain (weather statistics).

    Args:
        place_id: Id of the place.
        month: Number of the month, 1 to 12.
    """
    warm, wet = climate(_place(place_id).place_id, month)
    return {"temperature_celsius": warm, "rain_millimetre": wet}  # type: ignore[return-value]


def get_distance(device: Device, from_place_id: Id, to_place_id: Id) -> int:
    """Get the distance between two places in kilometres, as the crow flies.

    Args:
        from_place_id: Id of the first place.
        to_place_id: Id of the second place.
    """
    return distance_km(_place(from_place_id), _place(to_place_id))


def find_nearest_place(
    device: Device, latitude: Annotated[float, Field(ge=-90, le=90)], longitude: Annotated[float, Field(ge=-180, le=180)]
) -> Hit:
    """Find the place of the atlas that is nearest to coordinates (reverse geocoding).

    Args:
        latitude: Degrees north, -90 to 90.
        longitude: Degrees east, -180 to 180.
    """
    return _hit(nearest(latitude, longitude))  # type: ignore[return-value]


def convert_unit(device: Device, value: float, from_unit: Unit, to_unit: Unit) -> float:
    """Convert a value from one unit to another: distance, height, temperature, rain.

    Args:
        value: Value in the first unit.
        from_unit: Name of the first unit.
        to_unit: Name of the second unit.
    """
    if from_unit == to_unit:
        return value
    found = UNITS.get((from_unit, to_unit))
    if found is None:
        raise ToolError(ErrorKind.PRECONDITION, f"A {from_unit} cannot be converted to a {to_unit}.")
    return round(value * found[0] + found[1], 1)


FUNCTIONS = (search_places, list_places, get_place, get_climate, get_distance, find_nearest_place, convert_unit)
"""These tools, in order."""
