"""C10 loading is safe and loud: a broken row is an error that names it, or an explicit unknown part."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, Message, Opaque, StoredDataError
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import new_id, said, texts
from chatkeep.storage.codec import UNREADABLE

GOOD = {"format": "chatkeep/1", "parts": [{"type": "text"}]}


def body(**changes: Any) -> str:
    """The JSON of a body with one thing wrong."""
    return json.dumps({**GOOD, **changes})


HOSTILE_BODIES = {
    "truncated JSON": '{"format": "chatkeep/1", "parts": [{"ty',
    "empty": "",
    "white space": "  ",
    "no JSON": "<xml/>",
    "a list": "[]",
    "a text": '"text"',
    "a number": "1",
    "null": "null",
    "two objects": "{}{}",
    "NaN": '{"format": "chatkeep/1", "parts": [], "metadata": {"a": NaN}}',
    "Infinity": '{"format": "chatkeep/1", "parts": [], "metadata": {"a": -Infinity}}',
    "an empty object": "{}",
    "a future format": body(format="chatkeep/2"),
    "a foreign format": body(format="langchain/1"),
    "a format that is no text": body(format=1),
    "no format": json.dumps({"parts": [{"type": "text"}]}),
    "no parts": json.dumps({"format": "chatkeep/1"}),
    "parts of null": body(parts=None),
    "parts that are no list": body(parts={"type": "text"}),
    "a part that is a text": body(parts=["Hi"]),
    "a part that is null": body(parts=[None]),
    "a part without type": body(parts=[{"text": "Hi"}]),
    "a part of a future type": body(parts=[{"type": "text"}, {"type": "hologram", "data": "x"}]),
    "a text that is a number": body(parts=[{"type": "text", "text": 1}]),
    "a call without name": body(parts=[{"type": "tool_call", "id": "1", "arguments": "{}"}]),
    "arguments that are an object": body(parts=[{"type": "tool_call", "id": "1", "name": "f", "arguments": {}}]),
    "a result without call": body(parts=[{"type": "tool_result", "content": "x"}]),
    "media of bad base64": body(parts=[{"type": "media", "mime_type": "image/png", "data": "%%%"}]),
    "media without source": body(parts=[{"type": "media", "mime_type": "image/png"}]),
    "media with two sources": body(parts=[{"type": "media", "mime_type": "a/b", "data": "", "url": "x"}]),
    "metadata that is a list": body(metadata=[1]),
    "metadata that is a text": body(metadata="a"),
    "a name that is a number": body(name=1),
    "a python tag": body(parts=[{"py/object": "os.system", "py/reduce": ["os.system", ["echo"]]}]),
    "a pickle": repr(pickle.dumps({"a": 1}, protocol=0)),
    "deep nesting": "[" * 100_000,
    "deep metadata": body(metadata={"a": "DEEP"}).replace('"DEEP"', "[" * 5000 + "]" * 5000),
    "a duplicate format": '{"format": "chatkeep/1", "format": "chatkeep/9", "parts": []}',
    "an endless integer": body(metadata={"a": "BIG"}).replace('"BIG"', "9" * 5000),
}


@needs("overwrite_message")
class TestC10SafeLoading:
    """Rows that no chatkeep of this version wrote, planted behind the backend's back."""

    @pytest.mark.parametrize("kind", HOSTILE_BODIES)
    def test_a_row_that_cannot_be_read_is_named(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str, kind: str
    ) -> None:
        """StoredDataError with conversation and position; with leniency one Opaque part and all else readable."""
        strict, lenient = opened(), opened(on_unreadable="keep")
        messages = said(5)
        strict.append(conversation_id, messages)
        position = strict.history(conversation_id).items[2].position
        harness.overwrite_message(namespace, messages[2].id, body=HOSTILE_BODIES[kind])
        for read in (strict.find_by_conversation_id, strict.history):
            with pytest.raises(StoredDataError) as caught:
                read(conversation_id)
            assert caught.value.conversation_id == conversation_id
            assert caught.value.position == position
            assert conversation_id in str(caught.value)
            assert str(position) in str(caught.value)
        found = lenient.find_by_conversation_id(conversation_id)
        assert found[:2] + found[3:] == messages[:2] + messages[3:]
        self.check_kept(found[2], messages[2], HOSTILE_BODIES[kind])
        assert [entry.message for entry in lenient.history(conversation_id).items] == found

    def check_kept(self, found: Message, planted: Message, stored: str) -> None:
        """The unreadable row as an explicit unknown part, under its own id, with what was stored."""
        assert type(found) is Message
        assert found.id == planted.id
        assert found.created_at == planted.created_at
        (part,) = found.parts
        assert isinstance(part, Opaque)
        assert part.type == UNREADABLE
        assert part.data["row"]["body"] == stored
        assert part.data["row"]["content"] == planted.text
        assert part.data["reason"]

    def test_one_broken_row_breaks_nothing_else(
        self, harness: Harness, namespace: str, owned: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """What doesn't need the row works: windows beside it, count, directory, writes, deletion."""
        messages = said(5)
        owned.append(conversation_id, messages)
        other = new_id()
        owned.append(other, said(2))
        positions = [entry.position for entry in owned.history(conversation_id).items]
        harness.overwrite_message(namespace, messages[1].id, body="{")
        assert owned.find_by_conversation_id(conversation_id, limit=3) == messages[2:]
        assert [entry.message for entry in owned.history(conversation_id, after=positions[1]).items] == messages[2:]
        assert owned.count_messages(conversation_id) == 5
        assert sorted(owned.find_conversation_ids()) == sorted([conversation_id, other])
        assert len(owned.list_conversations().items) == 2
        assert texts(owned.find_by_conversation_id(other)) == texts(said(2))
        owned.append(conversation_id, said(1, "more"))
        assert owned.count_messages(conversation_id) == 6
        assert owned.delete_messages(conversation_id, [messages[1].id]) == 1
        assert len(owned.find_by_conversation_id(conversation_id)) == 5
        harness.overwrite_message(namespace, messages[2].id, body="{")
        owned.save_all(conversation_id, messages)
        assert owned.find_by_conversation_id(conversation_id) == messages
        harness.overwrite_message(namespace, messages[2].id, body="{")
        assert owned.delete_by_conversation_id(conversation_id) is True

    def test_an_append_over_a_broken_row_never_overwrites_it(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """The id of a row that can't be read is taken: repeating its message is an error, not a second row."""
        messages = said(2)
        repository.append(conversation_id, messages)
        harness.overwrite_message(namespace, messages[0].id, body="{")
        with pytest.raises((StoredDataError, ValueError)):
            repository.append(conversation_id, messages[0])
        assert repository.count_messages(conversation_id) == 2

    @pytest.mark.parametrize("role", ["critic", "developer", "Übersetzer", "ASSISTANT"])
    def test_an_unknown_role_is_readable(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str, role: str
    ) -> None:
        """Roles are open: one that this version doesn't know comes back as it stands."""
        (message,) = said(1)
        repository.append(conversation_id, message)
        harness.overwrite_message(namespace, message.id, role=role)
        (found,) = repository.find_by_conversation_id(conversation_id)
        assert (found.role, found.text) == (role, message.text)

    @pytest.mark.parametrize("role", ["", " user", "a\nb"], ids=["empty", "white space", "control character"])
    def test_a_role_that_is_none_is_a_broken_row(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str, role: str
    ) -> None:
        """It can't be a Message, so it is named, or kept as unreadable."""
        messages = said(2)
        opened().append(conversation_id, messages)
        harness.overwrite_message(namespace, messages[0].id, role=role)
        with pytest.raises(StoredDataError):
            opened().find_by_conversation_id(conversation_id)
        first, second = opened(on_unreadable="keep").find_by_conversation_id(conversation_id)
        assert isinstance(first.parts[0], Opaque)
        assert first.parts[0].data["row"]["role"] == role
        assert second == messages[1]

    def test_two_broken_rows_stay_two(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """Each under its own id, in order."""
        messages = said(4)
        opened().append(conversation_id, messages)
        for n in (1, 2):
            harness.overwrite_message(namespace, messages[n].id, body="{")
        found = opened(on_unreadable="keep").find_by_conversation_id(conversation_id)
        assert [message.id for message in found] == [message.id for message in messages]

    def test_an_unreadable_row_may_be_written_back(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """What leniency returned is an ordinary message: a copy keeps what was stored for a later version to read."""
        messages = said(3)
        lenient = opened(on_unreadable="keep")
        lenient.append(conversation_id, messages)
        harness.overwrite_message(namespace, messages[1].id, body=body(format="chatkeep/2"))
        found = lenient.find_by_conversation_id(conversation_id)
        copy = new_id()
        lenient.save_all(copy, found)
        assert opened().find_by_conversation_id(copy) == found

    def test_stored_bytes_are_data_only(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str, tmp_path: Path
    ) -> None:
        """A pickle or an import by name that would leave a trace leaves none."""
        trace = tmp_path / "trace"

        class Trap:
            def __reduce__(self) -> tuple[Any, ...]:
                return Path.touch, (trace,)

        traps = [
            pickle.dumps(Trap(), protocol=0).decode("latin-1").replace("\0", ""),
            body(parts=[{"type": "pathlib.Path.touch", "args": [str(trace)]}]),
            body(parts=[{"type": "opaque", "kind": "x", "data": {"py/reduce": ["pathlib.Path.touch", [str(trace)]]}}]),
            body(
                metadata={"__class__": "os.system", "$type": f"touch {trace}", "!!python/object/apply:os.system": "x"}
            ),
        ]
        messages = said(len(traps))
        repository = opened(on_unreadable="keep")
        repository.append(conversation_id, messages)
        for message, trap in zip(messages, traps, strict=True):
            harness.overwrite_message(namespace, message.id, body=trap)
        found = repository.find_by_conversation_id(conversation_id)
        assert [message.id for message in found] == [message.id for message in messages]
        assert not trace.exists()
        assert found[3].metadata["__class__"] == "os.system"


@needs("overwrite_conversation", "conversation_metadata")
class TestC10BrokenDirectory:
    """A conversation whose own metadata can't be read."""

    @pytest.mark.parametrize("metadata", ["{", "[1]", '"text"', "null", '{"a": NaN}', ""])
    def test_a_broken_entry_is_named_and_breaks_nothing_else(
        self, harness: Harness, namespace: str, opened: Opened, metadata: str
    ) -> None:
        """StoredDataError with its id; its messages, and with leniency the other entries, stay readable."""
        owner, ids = new_id("owner"), sorted(new_id() for _ in range(3))
        strict, lenient = opened(owner=owner), opened(owner=owner, on_unreadable="keep")
        messages = said(2)
        for conversation_id in ids:
            strict.append(conversation_id, said(1) if conversation_id != ids[1] else messages)
        harness.overwrite_conversation(namespace, ids[1], metadata=metadata)
        for read in (lambda: strict.get_conversation(ids[1]), strict.list_conversations):
            with pytest.raises(StoredDataError, match=ids[1]) as caught:
                read()
            assert caught.value.conversation_id == ids[1]
        assert strict.get_conversation(ids[0]) is not None
        assert strict.find_by_conversation_id(ids[1]) == messages
        assert strict.find_conversation_ids() == ids
        assert [conversation.id for conversation in lenient.list_conversations().items] == ids
        kept = lenient.get_conversation(ids[1])
        assert kept is not None
        assert kept.message_count == 2
        assert type(kept.metadata) is dict
        assert metadata in kept.metadata.values(), "the stored text is lost"
        strict.update_conversation(ids[1], metadata={"mended": True})
        assert [conversation.id for conversation in strict.list_conversations().items] == ids
