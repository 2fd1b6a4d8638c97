"""Raw samples as lines of JSON: what a bundle carries of the sources that no file tells (NVML, page placement)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ranktop.inspect.named import named
from ranktop.sample import Sample

MAX_SAMPLES = 10_000
_HEAD = b'{"ranktop_samples":1}'


class StreamError(ValueError):
    """Lines that are no samples: one line that says where and why."""


def write_stream(samples: Sequence[Sample]) -> bytes:
    """The samples, one a line, after a line that names the format. With the names of fields: people read it too."""
    told = (msgspec.convert(sample, named(Sample), from_attributes=True) for sample in samples)
    return b"\n".join((_HEAD, *map(msgspec.json.encode, told))) + b"\n"


def read_stream(data: bytes) -> list[Sample]:
    """The samples of `write_stream`; fields that this version does not know are left out. Raises StreamError."""
    lines = data.rstrip(b"\n").split(b"\n")
    if lines[0] != _HEAD:
        raise StreamError("samples of another format (made by a younger ranktop: update this one)")
    if len(lines) - 1 > MAX_SAMPLES:
        raise StreamError(f"more than {MAX_SAMPLES} samples")
    # Made here: it takes 30 ms, which no command that only imports this file should pay.
    decoder = msgspec.json.Decoder(named(Sample))
    found: list[Sample] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            found.append(msgspec.convert(decoder.decode(line), Sample, from_attributes=True))
        except (msgspec.DecodeError, RecursionError) as problem:
            raise StreamError(f"line {number} is no sample: {problem}") from None
    return found
