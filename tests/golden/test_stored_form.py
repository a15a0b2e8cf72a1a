"""docs/stored-form.md and its JSON Schema describe what is really stored."""

import datetime as dt
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from chatkeep import Message
from chatkeep.conformance import strategies
from chatkeep.storage import codec
from chatkeep.storage.record import MessageRecord

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "stored-form.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "docs" / "stored-form.schema.json").read_text(encoding="utf-8"))
MESSAGE = Draft202012Validator(SCHEMA)
BODY = Draft202012Validator({**SCHEMA, "$ref": "#/$defs/body"})
FILES = sorted((Path(__file__).parent / "format-1").glob("*.json"))
NOON = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@given(strategies.messages)
def test_any_message_is_as_the_schema_says(message: Message) -> None:
    MESSAGE.validate(json.loads(json.dumps(message.to_dict())))
    body = codec.encode(message, "message", sys.maxsize).body
    if body is not None:
        BODY.validate(json.loads(body))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_golden_files_are_as_the_schema_says(path: Path) -> None:
    data = json.loads(path.read_text(encoding="ascii"))
    MESSAGE.validate(data["message"])
    if data["row"]["body"] is not None:
        BODY.validate(json.loads(data["row"]["body"]))


def message(**fields: Any) -> dict[str, Any]:
    whole = {
        "format": "chatkeep/1",
        "role": "user",
        "id": "x",
        "created_at": "2026-06-01T12:00:00.000000Z",
        "parts": [],
        **fields,
    }
    return {key: value for key, value in whole.items() if value is not ...}


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        message(format="chatkeep/2"),
        message(format=...),
        message(role=""),
        message(role="a\n"),
        message(role="x" * 65),
        message(id="x" * 256),
        message(id=5),
        message(created_at="2026-06-01T12:00:00Z"),
        message(created_at="2026-06-01T12:00:00.000000+00:00"),
        message(parts=None),
        message(parts=...),
        message(parts=["x"]),
        message(parts=[{"type": "hologram"}]),
        message(parts=[{"type": "text"}]),
        message(parts=[{"type": "text", "text": None}]),
        message(parts=[{"type": "thinking", "text": "", "signature": None}]),
        message(parts=[{"type": "media", "mime_type": ""}]),
        message(parts=[{"type": "media", "mime_type": "", "data": "", "url": ""}]),
        message(parts=[{"type": "media", "mime_type": "", "data": "QQ"}]),
        message(parts=[{"type": "tool_call", "id": "", "name": "", "arguments": {}}]),
        message(parts=[{"type": "tool_result", "call_id": ""}]),
        message(parts=[{"type": "tool_result", "call_id": "", "content": "", "is_error": False}]),
        message(parts=[{"type": "tool_result", "call_id": "", "content": [{"type": "text"}]}]),
        message(parts=[{"type": "opaque", "kind": "", "data": 1, "more": 2}]),
        message(parts=[{"type": "opaque", "kind": ""}]),
        message(name=None),
        message(metadata=[]),
        message(metadata={}),
    ],
    ids=ascii,
)
def test_the_schema_refuses_what_chatkeep_does_not_write(wrong: Any) -> None:
    assert not MESSAGE.is_valid(wrong)


def test_only_a_body_may_leave_a_text_to_the_content_column() -> None:
    for part in ({"type": "text"}, {"type": "tool_result", "call_id": "c", "name": "f", "is_error": True}):
        assert BODY.is_valid({"format": "chatkeep/1", "parts": [part]})
        assert not MESSAGE.is_valid(message(parts=[part]))
    assert not BODY.is_valid({"format": "chatkeep/1", "parts": [], "role": "user"})
    assert not BODY.is_valid({"format": "chatkeep/1", "parts": [{"type": "tool_call"}]})


def test_the_example_of_the_document_is_a_message() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    data = json.loads(example)
    MESSAGE.validate(data)
    assert Message.from_dict(data).to_dict() == data


def test_the_bodies_of_the_document_are_what_is_stored() -> None:
    bodies = re.findall(r"`(\{\"format\".*?\})` \|", DOCUMENT)
    assert len(bodies) == 4
    for body, content in zip(bodies, ("Hi", "sunny", "one\ntwo", ""), strict=True):
        BODY.validate(json.loads(body))
        found = codec.decode(MessageRecord("m", "user", content, body, NOON), "c")
        again = codec.encode(found, "message", sys.maxsize)
        assert (again.content, again.body) == (content, body)


def test_the_document_and_the_schema_name_every_part() -> None:
    kinds = {reference["$ref"].rpartition("/")[2] for reference in SCHEMA["$defs"]["part"]["oneOf"]}
    table = DOCUMENT.partition("### Parts")[2].partition("### Values")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) - {"type"} == kinds
    for kind in kinds:
        (row,) = [line for line in table.splitlines() if line.startswith(f"| `{kind}` |")]
        for field in set(SCHEMA["$defs"][kind]["properties"]) - {"type"}:
            assert f"`{field}`" in row
