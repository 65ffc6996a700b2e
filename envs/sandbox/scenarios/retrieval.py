"""Information retrieval with places, climate and units. Hidden side."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from dynsteer_gym.envs.sandbox.atlas import Place, climate, distance_km, nearest, places
from dynsteer_gym.envs.sandbox.draw import Piece
from dynsteer_gym.envs.sandbox.goals import Goal, Number
from dynsteer_gym.envs.sandbox.scenarios.common import WHICH, WideDraw, call, fact, family

_MONTHS = "January February March April May June July August September October November December".split()


def _city(draw: WideDraw, *others: str) -> Place:
    """A city whose name is no other's, nor part of one."""
    names = [place.name for place in places()]
    plain = [place for place in places() if names.count(place.name) == 1 and place.name not in others]
    return draw.pick(plain)


def _look(place: Place) -> tuple[str, dict[str, object]]:
    return call("search_places", name=place.name)


def _about(place: Place) -> tuple[str, dict[str, object]]:
    return call("get_place", place_id=place.place_id)


def _tell(draw: WideDraw, slots: dict[str, str], value: Any, *plan: Any, **more: Any) -> Piece:
    """A question with one answer."""
    return Piece(slots, Goal(tells=(value,)), (*plan, f"It is {value}."), wants_answer=True, **more)


@family(
    "retrieval",
    "How many people live in {city}?",
    "What is the population of {city}?",
    "Tell me how large {city} is by population.",
    "Look up the number of inhabitants of {city}.",
)
def population(draw: WideDraw) -> Piece:
    place = _city(draw)
    route = (call("list_places", country=place.country), _look(place), _about(place), f"{place.population} people.")
    return _tell(draw, {"city": place.name}, place.population, _look(place), _about(place), routes=(route,))


@family(
    "retrieval",
    "At which latitude and longitude is {city}?",
    "What are the coordinates of {city}?",
    "Give me latitude and longitude of {city}.",
    "Where exactly is {city}, in degrees?",
)
def coordinates(draw: WideDraw) -> Piece:
    place = _city(draw)
    said = f"{place.name} is at {place.latitude}, {place.longitude}."
    return Piece(
        {"city": place.name},
        Goal(tells=(place.latitude, place.longitude)),
        (_look(place), _about(place), said),
        wants_answer=True,
    )


@family(
    "retrieval",
    "How warm is it in {city} in {month}?",
    "What is the mean temperature of {city} in {month}?",
    "Tell me how warm {city} is in {month}, in degrees Celsius.",
    "Which temperature can I expect in {city} in {month}?",
)
def warmth(draw: WideDraw) -> Piece:
    place, month = _city(draw), draw.below(12)
    value = climate(place.place_id, month + 1)[0]
    ask = call("get_climate", place_id=place.place_id, month=month + 1)
    return _tell(draw, {"city": place.name, "month": _MONTHS[month]}, value, _look(place), ask)


@family(
    "retrieval",
    "How warm is {city} in {month} in Fahrenheit?",
    "What is the mean temperature of {city} in {month}, in degrees Fahrenheit?",
    "Tell an American how warm it is in {city} in {month}: in Fahrenheit, please.",
    "Give me the {month} temperature of {city} in Fahrenheit.",
)
def fahrenheit(draw: WideDraw) -> Piece:
    place, month = _city(draw), draw.below(12)
    warm = climate(place.place_id, month + 1)[0]
    value = round(warm * 1.8 + 32, 1)
    ask = call("get_climate", place_id=place.place_id, month=month + 1)
    convert = call("convert_unit", value=warm, from_unit="celsius", to_unit="fahrenheit")
    slots = {"city": place.name, "month": _MONTHS[month]}
    return _tell(draw, slots, value, _look(place), ask, convert, routes=((_look(place), ask, f"{value} degrees."),))


@family(
    "retrieval",
    "How far is it from {city} to {city2}?",
    "What is the distance between {city} and {city2} in kilometres?",
    "Tell me the distance from {city} to {city2}.",
    "How many kilometres lie between {city} and {city2}?",
)
def distance(draw: WideDraw) -> Piece:
    one = _city(draw)
    other = _city(draw, one.name)
    value = distance_km(one, other)
    ask = call("get_distance", from_place_id=one.place_id, to_place_id=other.place_id)
    back = call("get_distance", from_place_id=other.place_id, to_place_id=one.place_id)
    slots = {"city": one.name, "city2": other.name}
    return _tell(draw, slots, value, _look(one), _look(other), ask, routes=((_look(other), _look(one), back, f"{value} km."),))


@family(
    "retrieval",
    "How many miles is it from {city} to {city2}?",
    "What is the distance between {city} and {city2} in miles?",
    "Tell me in miles how far {city} is from {city2}.",
    "From {city} to {city2}: how far is that in miles?",
)
def miles(draw: WideDraw) -> Piece:
    one = _city(draw)
    other = _city(draw, one.name)
    far = distance_km(one, other)
    value = round(far / 1.609344, 1)
    ask = call("get_distance", from_place_id=one.place_id, to_place_id=other.place_id)
    convert = call("convert_unit", value=far, from_unit="kilometre", to_unit="mile")
    return _tell(draw, {"city": one.name, "city2": other.name}, value, _look(one), _look(other), ask, convert)


@family(
    "retrieval",
    "Which city is nearest to where I am?",
    "What city am I closest to?",
    "Find the city nearest to my position.",
    "Tell me the nearest city to here.",
)
def nearest_city(draw: WideDraw) -> Piece:
    locate = call("get_current_position")
    off = draw.chance(0.5) and draw.claim_switches("where")
    if off:
        draw.switches["location_service"] = False
    else:
        draw.need_switches("where")
    here = draw.position
    place = nearest(here.latitude, here.longitude)
    find = call("find_nearest_place", latitude=here.latitude, longitude=here.longitude)
    before = (locate, call("set_location_service", on=True)) if off else ()
    return Piece(
        {},
        Goal(tells=(place.name,), tolerated=("location_service",) if off else ()),
        (*before, locate, find, f"It is {place.name}."),
        wants_answer=True,
        routes=((*before[1:], locate, find, f"You are closest to {place.name}."),),
    )


@family(
    "retrieval",
    "How high above the sea is {city}?",
    "What is the elevation of {city}?",
    "Tell me the elevation of {city}; there is more than one city of that name.",
    "At what height does {city} lie?",
)
def which_city(draw: WideDraw) -> Piece:
    names = [place.name for place in places()]
    place = draw.pick([place for place in places() if names.count(place.name) > 1])
    return _tell(
        draw,
        {"city": place.name},
        place.elevation_m,
        _look(place),
        "In which country?",
        _about(place),
        facts=(fact("which", WHICH + " country", f"The one in {place.country}."),),
        routes=(("Which country is it in?", call("list_places", country=place.country), _look(place), _about(place), f"{place.elevation_m} m."),),
    )


@family(
    "retrieval",
    "How high is {city} in feet?",
    "What is the elevation of {city} in feet?",
    "Give me the height of {city} above the sea in feet.",
    "In feet, how high does {city} lie?",
)
def feet(draw: WideDraw) -> Piece:
    place = _city(draw)
    value = round(place.elevation_m / 0.3048, 1)
    convert = call("convert_unit", value=place.elevation_m, from_unit="metre", to_unit="foot")
    return _tell(draw, {"city": place.name}, value, _look(place), _about(place), convert)


@family(
    "retrieval",
    "Which is warmer in {month}, {city} or {city2}?",
    "Is it {city} or {city2} that is warmer in {month}?",
    "Of {city} and {city2}, which one has the higher temperature in {month}?",
    "Compare {city} and {city2} in {month}: where is it warmer?",
)
def warmer(draw: WideDraw) -> Piece:
    month = draw.below(12)
    one = _city(draw)
    while True:
        other = _city(draw, one.name)
        warm = {place: climate(place.place_id, month + 1)[0] for place in (one, other)}
        if warm[one] != warm[other]:
            break
    best, worst = sorted((one, other), key=lambda place: -warm[place])
    asks = [call("get_climate", place_id=place.place_id, month=month + 1) for place in (one, other)]
    return Piece(
        {"city": one.name, "city2": other.name, "month": _MONTHS[month]},
        Goal(tells=(best.name, warm[best])),
        (_look(one), asks[0], _look(other), asks[1], f"It is {best.name} with {warm[best]}."),
        wants_answer=True,
        routes=((_look(other), _look(one), asks[1], asks[0], f"{best.name} is warmer, {warm[best]} against {warm[worst]}."),),
    )


@family(
    "retrieval",
    "Which city of {country} lies highest?",
    "Of all the cities in {country}, which has the greatest elevation?",
    "Find the highest city of {country} in the atlas.",
    "Tell me which city in {country} is at the greatest height.",
)
def highest(draw: WideDraw) -> Piece:
    country = draw.pick(("Germany", "United States", "Switzerland", "Austria"))
    rows = [place for place in places() if place.country == country]
    best = max(rows, key=lambda place: place.elevation_m)
    pages = [call("list_places", country=country, page=page) for page in range(1, -(-len(rows) // 3) + 1)]
    return Piece(
        {"country": country},
        Goal(tells=(best.name, best.elevation_m)),
        (*pages, *[_about(place) for place in rows], f"It is {best.name}, {best.elevation_m} m."),
        wants_answer=True,
        routes=((*pages, *[_about(place) for place in reversed(rows)], f"{best.name} lies at {best.elevation_m} m."),),
    )


@family(
    "retrieval",
    "Text {name} how warm it is in {city} in {month}.",
    "Send {name} the mean temperature of {city} in {month} as a message.",
    "Let {name} know by message how warm {city} is in {month}.",
    "Message {name} the {month} temperature of {city}.",
)
def text_weather(draw: WideDraw) -> Piece:
    place, month, person = _city(draw), draw.below(12), draw.contact()
    draw.need_switches("send")
    warm = climate(place.place_id, month + 1)[0]
    ask, look = call("get_climate", place_id=place.place_id, month=month + 1), call("search_contacts", name=person.name)
    send = call("send_message", phone_number=person.phone_number, content=f"{warm}")
    return Piece(
        {"name": person.name, "city": place.name, "month": _MONTHS[month]},
        Goal(adds=(("messages", {"recipient_phone_number": person.phone_number, "content": Number(warm)}),)),
        (_look(place), ask, look, send, "Done."),
        routes=((look, _look(place), ask, call("send_message", phone_number=person.phone_number, content=f"It is {warm} degrees."), "It is sent."),),
    )


@family(
    "retrieval",
    "How much does it rain there in {month}?",
    "Tell me how much rain falls there in {month}.",
    "What is the rain in {month} in the city I have in mind?",
    "I wonder how much rain they get in {month}.",
)
def ask_rain(draw: WideDraw) -> Piece:
    place, month = _city(draw), draw.below(12)
    value = climate(place.place_id, month + 1)[1]
    ask = call("get_climate", place_id=place.place_id, month=month + 1)
    return _tell(
        draw,
        {"month": _MONTHS[month]},
        value,
        "For which city?",
        _look(place),
        ask,
        facts=(fact("city", "city place where town", f"In {place.name}."),),
        routes=(("Which place do you mean?", _look(place), ask, f"{value} mm."),),
    )


@family(
    "retrieval",
    "How warm is it in {city} then?",
    "Tell me the temperature of {city} for my holidays.",
    "Is {city} warm when I travel there? I need the mean temperature.",
    "What temperature does {city} have in the month of my trip?",
)
def ask_month(draw: WideDraw) -> Piece:
    place, month = _city(draw), draw.below(12)
    warm, wet = climate(place.place_id, month + 1)
    ask = call("get_climate", place_id=place.place_id, month=month + 1)
    return Piece(
        {"city": place.name},
        Goal(tells=(warm, wet)),
        ("In which month?", _look(place), ask, f"It is {warm}.", f"There are {wet} millimetres."),
        facts=(fact("month", "month when time", f"In {_MONTHS[month]}."),),
        wants_answer=True,
        checks=("And how much rain?",),
        routes=((_look(place), "When do you travel?", ask, f"{warm} degrees.", f"{wet} mm."),),
    )


@family(
    "retrieval",
    "What time is it in {city} when it is {clock} in {city2} on {day}?",
    "If the clock in {city2} shows {clock} on {day}, what does it show in {city}?",
    "On {day} at {clock} in {city2}, what is the local time of {city}?",
    "Tell me the time in {city} at {clock}, {day}, {city2} time.",
)
def time_there(draw: WideDraw) -> Piece:
    one = _city(draw)
    other = _city(draw, one.name)
    there = f"{draw.day()} {6 + draw.below(14):02d}:00"
    moment = datetime.fromisoformat(there).replace(tzinfo=ZoneInfo(other.time_zone))
    value = moment.astimezone(ZoneInfo(one.time_zone)).strftime("%Y-%m-%d %H:%M")
    convert = call("convert_time", time=there, from_zone=other.time_zone, to_zone=one.time_zone)
    return Piece(
        {"city": one.name, "city2": other.name, "day": there[:10], "clock": there[11:]},
        Goal(tells=(value[11:],)),
        (_look(one), _about(one), _look(other), _about(other), convert, f"It is {value}."),
        wants_answer=True,
        routes=((_look(other), _look(one), _about(other), _about(one), f"The clock shows {value[11:]}."),),
    )
