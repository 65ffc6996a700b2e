"""A small atlas with a climate table, shipped with the world: rounded figures, for play and not for navigation."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Place", "climate", "distance_km", "nearest", "places"]


class Place(NamedTuple):
    """A city.

    Attributes:
        place_id: Its key.
        name: Its name; some share one.
        country: Its country.
        latitude: Degrees north.
        longitude: Degrees east.
        elevation_m: Metres above the sea.
        population: People.
        time_zone: IANA name.
    """

    place_id: str
    name: str
    country: str
    latitude: float
    longitude: float
    elevation_m: int
    population: int
    time_zone: str


# Name; country; latitude; longitude; elevation; population; zone; temperatures and rain in January, April, July, October.
_TABLE = """
Berlin;Germany;52.52;13.40;34;3677000;Europe/Berlin;1 10 20 10;43 35 60 38
Munich;Germany;48.14;11.58;520;1488000;Europe/Berlin;0 9 19 10;48 57 121 61
Hamburg;Germany;53.55;9.99;6;1853000;Europe/Berlin;2 9 18 10;66 43 79 65
Dresden;Germany;51.05;13.74;113;555000;Europe/Berlin;1 9 20 10;46 36 83 46
Freiburg;Germany;48.00;7.85;278;231000;Europe/Berlin;2 11 21 12;53 65 85 76
Oslo;Norway;59.91;10.75;23;709000;Europe/Oslo;-4 6 18 7;58 44 93 93
Bergen;Norway;60.39;5.32;12;289000;Europe/Oslo;2 6 15 9;255 139 185 285
Tromsø;Norway;69.65;18.96;10;77000;Europe/Oslo;-4 1 12 3;95 64 77 131
Stockholm;Sweden;59.33;18.07;28;984000;Europe/Stockholm;-2 6 19 8;38 29 64 50
Malmö;Sweden;55.60;13.00;12;351000;Europe/Stockholm;1 7 18 9;50 36 65 63
Lisbon;Portugal;38.72;-9.14;15;545000;Europe/Lisbon;12 16 23 19;100 68 4 101
Porto;Portugal;41.15;-8.61;104;232000;Europe/Lisbon;10 14 20 16;147 116 20 158
Madrid;Spain;40.42;-3.70;667;3280000;Europe/Madrid;6 13 26 16;33 45 12 60
Valencia;Spain;39.47;-0.38;15;791000;Europe/Madrid;12 16 26 20;37 33 8 77
Valencia;Venezuela;10.16;-68.00;520;1484000;America/Caracas;25 27 26 26;10 60 150 120
Cordoba;Spain;37.89;-4.78;120;326000;Europe/Madrid;9 16 28 20;66 55 3 86
Cordoba;Argentina;-31.42;-64.18;390;1505000;America/Argentina/Cordoba;25 18 11 19;122 57 10 74
Paris;France;48.86;2.35;35;2103000;Europe/Paris;5 12 20 13;51 52 62 61
Lyon;France;45.76;4.84;173;522000;Europe/Paris;4 12 22 14;47 75 64 99
Nice;France;43.70;7.27;10;343000;Europe/Paris;9 13 24 17;69 66 12 133
Rome;Italy;41.90;12.50;21;2761000;Europe/Rome;8 13 25 18;67 63 21 107
Milan;Italy;45.46;9.19;120;1371000;Europe/Rome;4 14 25 15;59 77 67 123
Turin;Italy;45.07;7.69;239;848000;Europe/Rome;3 13 24 14;41 99 62 89
Birmingham;United Kingdom;52.48;-1.89;140;1145000;Europe/London;4 9 17 11;73 57 67 82
Birmingham;United States;33.52;-86.80;196;200000;America/Chicago;7 17 28 18;124 113 128 78
London;United Kingdom;51.51;-0.13;11;8800000;Europe/London;6 11 19 12;59 45 46 70
Edinburgh;United Kingdom;55.95;-3.19;47;527000;Europe/London;4 8 15 10;65 41 72 76
Portland;United States;45.52;-122.68;15;652000;America/Los_Angeles;5 11 21 13;124 69 15 80
New York;United States;40.71;-74.01;10;8336000;America/New_York;1 12 25 14;93 104 117 112
Denver;United States;39.74;-104.99;1609;715000;America/Denver;0 9 24 11;10 44 48 25
Chicago;United States;41.88;-87.63;181;2746000;America/Chicago;-4 10 24 12;51 95 102 87
San Francisco;United States;37.77;-122.42;16;874000;America/Los_Angeles;11 13 15 16;106 39 0 24
Tokyo;Japan;35.68;139.69;40;13960000;Asia/Tokyo;5 14 26 18;60 134 156 235
Kyoto;Japan;35.01;135.77;56;1464000;Asia/Tokyo;5 14 27 18;53 117 224 143
Sapporo;Japan;43.06;141.35;26;1973000;Asia/Tokyo;-3 7 21 12;109 55 90 110
Sydney;Australia;-33.87;151.21;58;5312000;Australia/Sydney;24 19 13 18;96 127 75 77
Perth;Australia;-31.95;115.86;31;2125000;Australia/Perth;25 20 13 17;17 36 147 40
Cape Town;South Africa;-33.92;18.42;42;4618000;Africa/Johannesburg;21 17 12 17;10 41 83 30
Nairobi;Kenya;-1.29;36.82;1795;4397000;Africa/Nairobi;20 20 17 20;64 191 14 51
Cairo;Egypt;30.04;31.24;23;10100000;Africa/Cairo;14 22 29 24;5 1 0 1
Santiago;Chile;-33.45;-70.67;570;6160000;America/Santiago;21 15 8 14;0 12 76 13
Santiago;Dominican Republic;19.45;-70.70;178;691000;America/Santo_Domingo;24 25 28 27;55 98 50 115
Bogotá;Colombia;4.71;-74.07;2640;7743000;America/Bogota;14 14 13 14;45 110 45 140
Mexico City;Mexico;19.43;-99.13;2240;9209000;America/Mexico_City;14 19 18 17;9 28 170 60
Zurich;Switzerland;47.38;8.54;408;421000;Europe/Zurich;1 10 19 10;64 79 124 85
Geneva;Switzerland;46.20;6.14;375;204000;Europe/Zurich;2 10 21 11;73 72 80 105
Bern;Switzerland;46.95;7.45;540;134000;Europe/Zurich;0 9 19 10;60 82 110 88
Vienna;Austria;48.21;16.37;171;1982000;Europe/Vienna;1 11 22 11;38 45 81 50
Graz;Austria;47.07;15.44;353;292000;Europe/Vienna;0 11 21 11;24 48 127 69
Innsbruck;Austria;47.27;11.39;574;131000;Europe/Vienna;-1 10 19 10;52 59 138 67
"""


@lru_cache(maxsize=1)
def _read() -> tuple[tuple[Place, ...], dict[str, tuple[tuple[float, ...], tuple[float, ...]]]]:
    found, weather = [], {}
    for number, line in enumerate(_TABLE.strip().splitlines()):
        name, country, latitude, longitude, elevation, people, zone, warm, wet = line.split(";")
        key = f"pl{(number * 37 + 11) % 97:02d}"
        found.append(Place(key, name, country, float(latitude), float(longitude), int(elevation), int(people), zone))
        weather[key] = (tuple(map(float, warm.split())), tuple(map(float, wet.split())))
    return tuple(found), weather


def places() -> tuple[Place, ...]:
    """All cities."""
    return _read()[0]


def climate(place_id: str, month: int) -> tuple[float, float]:
    """Mean temperature and rain of a month.

    The table has January, April, July and October; the months between are interpolated.

    Args:
        place_id: Key of a city.
        month: 1 to 12.

    Returns:
        Degrees Celsius and millimetres, to one decimal.
    """
    warm, wet = _read()[1][place_id]
    season, rest = divmod(month - 1, 3)
    share = rest / 3

    def between(values: tuple[float, ...]) -> float:
        return round(values[season] * (1 - share) + values[(season + 1) % 4] * share, 1)

    return between(warm), between(wet)


def distance_km(one: Place, other: Place) -> int:
    """Great-circle distance in whole kilometres."""
    a, b = math.radians(one.latitude), math.radians(other.latitude)
    across = math.radians(other.longitude - one.longitude)
    half = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(across / 2) ** 2
    return round(2 * 6371 * math.asin(math.sqrt(half)))


def nearest(latitude: float, longitude: float) -> Place:
    """The city nearest to a point."""
    point = Place("", "", "", latitude, longitude, 0, 0, "")
    return min(places(), key=lambda place: (distance_km(point, place), place.place_id))
