"""Two estimators without a network: a heuristic that needs nothing, and OpenAI's tokenizers through bpe-openai."""

from __future__ import annotations

import bisect
import collections
import functools
import importlib.metadata
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from chatkeep.errors import ConfigurationError
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from chatkeep.storage.jsontext import dump_json

TOKENS_PER_MESSAGE = 4
"""Role and the marks around a message. OpenAI's cookbook (how to count tokens with tiktoken) has 3 and the role."""
TOKENS_PER_NAME = 1
TOKENS_PER_CALL = 8
"""The marks around a call or a result, and its id."""
TOKENS_PER_REQUEST = 3
"""Every reply is primed with so many (the same cookbook)."""
TOKENS_PER_IMAGE = 1600
"""The most that Anthropic takes for an image after scaling it (its guide on vision: width x height / 750); OpenAI takes
up to about as many in high detail."""
BYTES_PER_TOKEN_OF_MEDIA = 16
"""Of documents and sound, whose true cost depends on pages and seconds: a page of 50 KB is taken for 3,000 tokens."""


def count_of(message: Message, tokens_of: Callable[[str], int]) -> int:
    """Everything that is sent for a message: name, text, thinking, calls, results, media, and the marks around them."""
    count = TOKENS_PER_MESSAGE + _of_parts(message.parts, tokens_of)
    if message.name is not None:
        count += TOKENS_PER_NAME + tokens_of(message.name)
    return count


def _of_parts(parts: Iterable[Part], tokens_of: Callable[[str], int]) -> int:
    return sum(_of_part(part, tokens_of) for part in parts)


def _of_part(part: Part, tokens_of: Callable[[str], int]) -> int:
    if isinstance(part, (Text, Thinking)):
        return tokens_of(part.text)
    if isinstance(part, ToolCall):
        return TOKENS_PER_CALL + tokens_of(part.name) + tokens_of(part.arguments)
    if isinstance(part, ToolResult):
        content = part.content
        inside = tokens_of(content) if isinstance(content, str) else _of_parts(content, tokens_of)
        return TOKENS_PER_CALL + tokens_of(part.name or "") + inside
    if isinstance(part, Media):
        return _of_media(part, tokens_of)
    assert isinstance(part, Opaque)
    return tokens_of(part.type) + tokens_of(dump_json(part.data))


def _of_media(media: Media, tokens_of: Callable[[str], int]) -> int:
    data = media.data or b""
    named = tokens_of(media.name or "") + tokens_of(media.url or "")
    if media.mime_type.startswith("image/"):
        return named + TOKENS_PER_IMAGE
    if media.mime_type.startswith("text/"):
        return named + tokens_of(data.decode(errors="replace"))
    return named + max(TOKENS_PER_IMAGE, len(data) // BYTES_PER_TOKEN_OF_MEDIA)


class HeuristicTokenCountEstimator:
    """An estimate from the characters of a text, with nothing to install.

    Measured against `o200k_base`, the tokenizer of OpenAI's models since GPT-4o: never less than two thirds of its
    count, whatever the text; for prose, code and JSON not less. Usually it is a quarter to a half more, in other
    scripts than Latin up to two and a half times. Other tokenizers differ: leave room. Media are counted by constants:
    an image 1,600, other files a token for 16 bytes and at least 1,600.
    """

    name = "heuristic"
    version = "1"
    tokens_per_request = TOKENS_PER_REQUEST

    def count_message(self, message: Message) -> int:
        return count_of(message, heuristic_tokens)


def heuristic_tokens(text: str) -> int:
    """Tokens of a text, by its characters."""
    return math.ceil(sum(_weight(char) * count for char, count in collections.Counter(text).items()))


@functools.cache
def _ascii_weights() -> dict[str, float]:
    weights = {}
    for char in map(chr, range(128)):
        if char.isalpha():
            weights[char] = 0.35 if char.islower() else 0.55
        elif char.isdigit():
            weights[char] = 0.5
        elif char == " ":
            weights[char] = 0.1  # nearly always a part of the word behind it
        elif char in "\t\n\r":
            weights[char] = 0.6
        else:
            weights[char] = 0.7 if char.isprintable() else 1.0
    return weights


_BLOCKS = (
    (0x80, 1.0),  # Latin-1
    (0x100, 1.3),  # other Latin, phonetic, combining marks
    (0x370, 1.1),  # Greek
    (0x400, 0.75),  # Cyrillic of the larger languages
    (0x460, 1.25),  # other Cyrillic, Armenian
    (0x590, 0.75),  # Hebrew, Arabic
    (0x660, 1.05),  # other Arabic
    (0x700, 1.35),
    (0x900, 0.85),  # Devanagari
    (0x980, 1.1),  # other scripts of India
    (0xE00, 0.8),  # Thai
    (0xE80, 1.35),
    (0x1100, 2.0),  # Hangul Jamo, Ethiopic and rarer scripts
    (0x2000, 1.7),  # punctuation, symbols
    (0x3000, 1.1),  # kana
    (0x3100, 1.35),  # Chinese characters
    (0xA000, 2.0),  # Yi and rarer scripts
    (0xAC00, 1.55),  # Hangul
    (0xD7A4, 2.0),  # private use, presentation forms
    (0x10000, 2.8),  # emoji, rare characters: up to a token for each of four bytes
)
_STARTS = [start for start, _ in _BLOCKS]


def _weight(char: str) -> float:
    if char < "\x80":
        return _ascii_weights()[char]
    return _BLOCKS[bisect.bisect_right(_STARTS, ord(char)) - 1][1]


class OpenAiTokenCountEstimator:
    """OpenAI's own tokenizers, exact for the text of a message; the marks around it and media as documented above.

    `encoding`: "o200k_base" (GPT-4o and later) or "cl100k_base" (GPT-4, GPT-3.5). Needs `pip install
    'chatkeep[tokens]'`, whose package brings the vocabularies with it. Unlike the usual byte-pair loops it takes time
    in proportion to the text, whatever the text is.

    Raises ConfigurationError where the package is missing or doesn't know the encoding.
    """

    tokens_per_request = TOKENS_PER_REQUEST

    def __init__(self, encoding: str = "o200k_base") -> None:
        try:
            with warnings.catch_warnings():
                # It opens its vocabularies by a function that Python 3.11 and 3.12 call deprecated.
                warnings.simplefilter("ignore", DeprecationWarning)
                import bpe_openai
        except ImportError as error:
            raise ConfigurationError(
                "OpenAiTokenCountEstimator: needs bpe-openai, which is not installed; "
                "run: pip install 'chatkeep[tokens]'"
            ) from error
        known = ("o200k_base", "cl100k_base")
        if encoding not in known:
            raise ConfigurationError(f"encoding: expected {' or '.join(map(repr, known))}, got {encoding!r}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._encoding: Any = bpe_openai.get_encoding(encoding)
        self.name = encoding
        # The package's version counts too: a correction of it changes counts.
        self.version = f"1+{importlib.metadata.version('bpe-openai')}"

    def count_message(self, message: Message) -> int:
        return count_of(message, self.count_text)

    def count_text(self, text: str) -> int:
        """Tokens of a text. Lone surrogates, which have no bytes, count as the replacement character."""
        # What looks like a special token in somebody's text is text.
        return len(self._encoding.encode_ordinary(text.encode(errors="replace").decode()))
