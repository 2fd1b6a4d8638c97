"""What stands still of a part: layout, shape, words, and a first row of numbers. Stored once, used by id."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ranktop.recording.bounded import inflate
from ranktop.recording.build import Build, Source, builder
from ranktop.recording.errors import Damaged
from ranktop.recording.flips import with_sums
from ranktop.recording.layout import Layout, Number

MAX_SCHEMA_BYTES = 64 << 20


class Schema(Struct, frozen=True):
    """`words` may hold Structs of text when it comes from a sample, builtins when it comes from a file.

    `base`: the first numbers, still in msgpack, as rows are XORed with its bytes.
    """

    layout: Layout
    shape: list[int]
    words: list[Any]
    base: msgspec.Raw

    def encoded(self) -> bytes:
        """As stored in `series.data`."""
        return with_sums(zlib.compress(msgspec.msgpack.encode(self), 6))


class KnownSchema:
    """A schema from a file, with the function that builds its values."""

    __slots__ = ("_build", "_words", "schema", "words_are_typed")

    def __init__(self, blob: bytes) -> None:
        """Damaged when the bytes are no schema."""
        try:
            self.schema = msgspec.msgpack.decode(inflate(blob, MAX_SCHEMA_BYTES), type=Schema)
            self._build: Build = builder(self.schema.layout)
            self._words = self.schema.words
            self.words_are_typed = False
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise Damaged(f"a schema cannot be read: {problem}") from problem

    def use_words(self, words: list[Any]) -> None:
        """The same words as this version's types: `msgspec.convert` takes those as they are, half of a seek."""
        self.words_are_typed = True
        if len(words) == len(self._words):
            self._words = words

    def value(
        self,
        numbers: list[Number],
        changed_words: Mapping[int, Any],
        loose: tuple[list[int], list[Any]] | None = None,
    ) -> Any:
        """One value as builtins; `loose` is its own shape and words. Damaged when the numbers do not fit the shape."""
        shape, words = loose or (self.schema.shape, self._words)
        try:
            if changed_words:
                words = words.copy()
                for index, word in changed_words.items():
                    words[index] = word
            source = Source(numbers, words, shape)
            value = self._build(source, 1)[0]
        except (ValueError, TypeError, KeyError, IndexError, StopIteration, RecursionError) as problem:
            raise Damaged(f"a row does not fit its schema: {problem!r}") from problem
        if any(next(rest, self) is not self for rest in (source.numbers, source.words, source.shape)):
            raise Damaged("a row has more values than its schema")
        return value
