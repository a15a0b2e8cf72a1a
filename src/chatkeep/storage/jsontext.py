"""JSON text and values: any text of Python's, integers of any size, no NaN."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def dump_json(value: Any) -> str:
    """JSON text that every engine can store, for a value that `values` has checked."""
    try:
        return _encoder.encode(value).decode()
    except (UnicodeEncodeError, OverflowError, ValueError):
        # Lone surrogates and integers beyond 64 bits: the standard library writes both, the first as \udXXX.
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def load_json(text: str) -> Any:
    """The value of a JSON text; ValueError where it is none."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
