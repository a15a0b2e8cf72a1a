"""Remembers the passwords of this run, so that no text that leaves it holds one. The last line of defence."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
_CREDENTIALS = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*://[^:/?#]*:(.*)@", re.DOTALL)
_PASSWORD_OPTION = re.compile(r"[?&]password=([^&]+)", re.IGNORECASE)
_secrets: set[str] = set()


def learn(secret: str | None) -> None:
    """Mask this text from now on, in plain and in percent-encoded form."""
    if secret and len(secret) > 1:
        _secrets.update((secret, quote(secret, safe=""), quote_plus(secret), unquote(secret)))


def learn_from(texts: Iterable[str]) -> None:
    """Mask the passwords of everything that looks like a URL, and of the environment."""
    for text in (*texts, os.environ.get("CHATKEEP_URL", "")):
        for pattern in (_CREDENTIALS, _PASSWORD_OPTION):
            for match in pattern.finditer(text):
                learn(match[1])
    learn(os.environ.get("CHATKEEP_PASSWORD"))


def masked(text: str) -> str:
    """The text without the secrets of this run."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
