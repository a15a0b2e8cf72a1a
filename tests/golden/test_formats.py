"""Conversations in every format: read as they ever were, and written as they came.

`document` is what a provider or framework holds, `messages` the dict form of what it became when it was frozen here.
"""

import json
from pathlib import Path

import pytest

from chatkeep import Message
from chatkeep.formats import find_format, format_names

FOLDER = Path(__file__).parent / "formats"


def text(value: object) -> str:
    """1 and 1.0 are equal in Python and not the same."""
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize("name", format_names())
def test_a_document_is_read_as_ever_and_written_as_it_came(name: str) -> None:
    golden = json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii"))
    read = find_format(name).read(golden["document"])
    frozen = [Message.from_dict(data) for data in golden["messages"]]
    assert [reduced(message) for message in read] == [reduced(message) for message in frozen]
    assert text(find_format(name).write(frozen, conversation_id="c")) == text(golden["document"])


def reduced(message: Message) -> str:
    """Without what is made anew at each reading."""
    return text({key: value for key, value in message.to_dict().items() if key not in ("id", "created_at")})


def test_the_times_of_spring_ais_rows_are_read_as_ever() -> None:
    golden = json.loads((FOLDER / "spring-ai.json").read_text(encoding="ascii"))
    read = find_format("spring-ai").read(golden["document"])
    for index in (0, 1, 2, 4):  # the other row tells none
        assert read[index].to_dict()["created_at"] == golden["messages"][index]["created_at"]


def test_there_is_a_file_of_every_format() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(format_names())
