"""The Python of the pages about advisors and vectors runs, from top to bottom, as one program."""

import re
from pathlib import Path
from typing import Any

import pytest

from chatkeep import Message, open_repository
from chatkeep.advisors import VectorStoreChatMemoryAdvisor
from chatkeep.conformance.scripted import WordEmbedding
from chatkeep.memory import MessageWindowChatMemory
from chatkeep.vectors import InProcessVectorStore, VectorMemory

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["advisors", "vectors"])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown: list[str] = []
    with open_repository("sqlite:///given.db") as repository:
        given: dict[str, Any] = {
            "model": lambda messages: f"An answer to {messages[-1].text}",
            "ask": lambda messages: Message.assistant("Asked."),
            "run": lambda call: "Ran.",
            "embed": WordEmbedding(),
            "show": shown.append,
            "repository": repository,
            "Message": Message,
            "VectorStoreChatMemoryAdvisor": VectorStoreChatMemoryAdvisor,
        }
        blocks = BLOCK.findall((ROOT / f"docs/{page}.md").read_text(encoding="utf-8"))
        assert blocks
        for number, block in enumerate(blocks):
            exec(compile(block, f"docs/{page}.md, example {number + 1}", "exec"), given)
            # The first example's repository is closed behind it.
            given["repository"] = repository
            given["memory"] = MessageWindowChatMemory(repository)
            given["vectors"] = VectorMemory(repository, WordEmbedding(), model="words", store=InProcessVectorStore())
    assert shown == []
