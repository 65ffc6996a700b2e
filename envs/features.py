"""Words as numbers for the finite action interface: hashed embeddings and overlaps, no model needed.

A *variant* is a way to use a tool as far as words go: the tool with one optional parameter or one boolean constant, a
question for a parameter, an answer with a field. What the request's words say about a variant is computed once for each
request; candidates copy it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynsteer_gym.kinds import parameter_type, plain_schema, return_fields
from dynsteer_gym.language import words
from dynsteer_gym.lexicon import IMPERATIVES, VERBS, concepts, weighted
from dynsteer_gym.task import ToolSpec, catalogue_key

__all__ = ["EMBEDDING", "OVERLAPS", "CatalogueWords", "catalogue_words", "said_concepts"]

EMBEDDING = 8
"""Dimensions of the hashed word embeddings."""
OVERLAPS = 5
"""Overlap columns of a variant: action, things, description, parameter or field, constant; each in [0, 1]."""

_CONSTANT_WORDS = {True: "on enable activate", False: "off disable deactivate"}


@lru_cache(maxsize=8192)
def said_concepts(text: str) -> dict[str, float]:
    """The concepts of what somebody said, with weights; a command may begin with a noun that is an action there."""
    found = dict(weighted(text))
    first = IMPERATIVES.get((words(text) or ("",))[0])
    if first is not None:
        found[first] = 1.0
    return found


@lru_cache(maxsize=16384)
def _embedding(word: str) -> NDArray[np.float32]:
    seed = int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "little")
    signs = np.random.default_rng(seed).standard_normal(EMBEDDING)
    return (signs / np.linalg.norm(signs)).astype(np.float32)


def embed(items: Iterable[str]) -> NDArray[np.float32]:
    """The normalised sum of the hashed embeddings of some words, shape ``(EMBEDDING,)``."""
    total = np.zeros(EMBEDDING, np.float32)
    for item in items:
        total += _embedding(item)
    norm = float(np.sqrt(total @ total))
    return total / norm if norm > 0 else total




class CatalogueWords:
    """The variants of one tool catalogue, and what a text says about each of them.

    Attributes:
        types: Coarse parameter types by tool and parameter.
        variants: Row of each variant in the matrices, by key: ``(tool, parameter or "", constant or None)``.
    """

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        """Reads the catalogue.

        Args:
            tools: The tools on offer.
        """
        self.tools = tools
        self.types: dict[str, dict[str, str]] = {
            tool.name: {name: parameter_type(name, schema) for name, schema in tool.properties.items()} for tool in tools
        }
        self.variants: dict[tuple[str, str, object], int] = {}
        rows: list[tuple[str, str, str, str, str]] = []

        def add(key: tuple[str, str, object], texts: tuple[str, str, str, str, str]) -> None:
            if key not in self.variants:
                self.variants[key] = len(rows)
                rows.append(texts)

        for tool in tools:
            action, things = _split(tool.name)
            add((tool.name, "", None), (action, things, tool.description, "", ""))
            for name, schema in tool.properties.items():
                described = f"{name} {schema.get('description', '')}"
                plain = plain_schema(schema)
                constants = [True, False] if plain.get("type") == "boolean" else list(plain.get("enum", ()))
                for constant in constants:
                    said = _CONSTANT_WORDS[constant] if isinstance(constant, bool) else str(constant)
                    add((tool.name, name, constant), (action, things, tool.description, described, said))
                if not constants:
                    add((tool.name, name, None), (action, things, tool.description, described, ""))
                    add(("?", name, None), ("", "", "", name, ""))
        for tool in tools:
            for name in sorted(return_fields(tool.returns)):
                add(("=", name, None), ("", "", "", name, ""))
        for name, meaning in (("confirm", ""), ("report", ""), ("refuse", "unknown")):
            add((name, "", None), ("", meaning, "", "", ""))
        self._index(rows)

    def __reduce__(self) -> Any:
        """Pickles as its catalogue: the words are read again, once a process."""
        return catalogue_words, (self.tools,)

    def _index(self, rows: list[tuple[str, str, str, str, str]]) -> None:
        parts = [[concepts(text) for text in row] for row in rows]
        vocabulary: dict[str, int] = {}
        for row in parts:
            for part in row:
                for item in part:
                    vocabulary.setdefault(item, len(vocabulary))
        self.vocabulary = vocabulary
        tools = [set(concepts(f"{tool.name} {tool.description}")) for tool in self.tools]
        weights = np.ones(len(vocabulary), np.float32)
        for item, column in vocabulary.items():
            holding = sum(item in tool for tool in tools)
            weights[column] = log((1 + len(tools)) / (0.5 + holding)) / log(2 + 2 * len(tools))
        incidence = np.zeros((OVERLAPS, len(rows), len(vocabulary)), np.float32)
        vectors = np.zeros((len(rows), EMBEDDING), np.float32)
        for number, row in enumerate(parts):
            for which, part in enumerate(row):
                total = sum(float(weights[vocabulary[item]]) for item in part)
                for item in part:
                    incidence[which, number, vocabulary[item]] = weights[vocabulary[item]] / max(total, 1e-6)
            vectors[number] = embed([*row[0], *row[0], *row[1], *row[1], *row[2], *row[3], *row[3], *row[4]])
        # Two names of one tool would divide a word's weight; a word asks for the most specific part that holds it.
        self._incidence = incidence.reshape(OVERLAPS * len(rows), len(vocabulary))
        self._vectors = vectors
        self.size = len(rows)

    def overlap(self, text: str) -> NDArray[np.float32]:
        """How many of each variant's words a text holds, weighted by rarity, shape ``(size, OVERLAPS)`` in [0, 1]."""
        said = np.zeros(len(self.vocabulary), np.float32)
        column = self.vocabulary.get
        for item, weight in said_concepts(text).items():
            place = column(item)
            if place is not None:
                said[place] = weight
        return (self._incidence @ said).reshape(OVERLAPS, self.size).T

    def features(self, text: str) -> NDArray[np.float32]:
        """Overlaps and the product of embeddings for each variant, shape ``(size, OVERLAPS + EMBEDDING)``."""
        table = np.empty((self.size, OVERLAPS + EMBEDDING), np.float32)
        table[:, :OVERLAPS] = self.overlap(text)
        np.multiply(self._vectors, embed(said_concepts(text)) * (EMBEDDING**0.5), out=table[:, OVERLAPS:])
        return table


def _split(name: str) -> tuple[str, str]:
    """The action and the things in a tool's name."""
    parts = words(name)
    head = parts[:1] if parts and set(concepts(parts[0])) & (VERBS | {"get"}) else ()
    return " ".join(head), " ".join(parts[len(head) :])


_CATALOGUES: dict[Any, CatalogueWords] = {}


def catalogue_words(tools: tuple[ToolSpec, ...]) -> CatalogueWords:
    """The words of a catalogue, built once for each catalogue."""
    key = (catalogue_key(tools, ()), tuple(tool.name for tool in tools))
    known = _CATALOGUES.get(key)
    if known is None:
        if len(_CATALOGUES) >= 256:
            _CATALOGUES.clear()
        known = _CATALOGUES[key] = CatalogueWords(tools)
    return known
