"""docs/memory.md, run as it stands: each block of code, and what the page says that it prints."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[2] / "docs/memory.md"


def test_the_page_prints_what_it_says() -> None:
    blocks = re.findall(r"```(python|text)\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    printed = ""
    compared = 0
    for kind, text in blocks:
        if kind == "text":
            assert printed == text
            compared += 1
            printed = ""
            continue
        assert printed == "", "the page does not say what this prints"
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(text, names)
        printed = output.getvalue()
    assert compared >= 5
    names["repository"].close()


def test_the_page_names_every_memory() -> None:
    from chatkeep import memory

    text = DOCUMENT.read_text(encoding="utf-8")
    for name in memory.__all__:
        if not name.startswith("Async") and name.endswith(("Memory", "Estimator")) and name != "ConversationMemory":
            assert name in text, name
