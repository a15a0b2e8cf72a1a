"""The harness of the example store: its conversations are files, so looking behind it is reading them."""

import contextlib
import datetime as dt
import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from chatkeep import Message, open_repository
from chatkeep.backends.custom import state
from chatkeep.capabilities import MAX_MESSAGE_BYTES, Capabilities
from chatkeep.conformance import Harness
from examples.own_store import json_files

NO_SERVER = "there is no server, and so no session"
NO_SCHEMA = "there is no schema to migrate"


class JsonFilesHarness(Harness):
    backend = "jsonfiles"
    schemes = ("jsonfiles",)
    child_imports = (json_files.__name__,)
    expected_capabilities = Capabilities(
        max_message_bytes=MAX_MESSAGE_BYTES,
        durable=True,
        atomic_replace=True,
        concurrent_appends=True,
        conditional_writes=True,
    )
    append_statements = 2
    cannot: ClassVar = {
        "rejecting_insert": "a file has no triggers",
        "rejecting_commit": "a file has no triggers",
        "overwrite_message": "a file holds messages in dict form, not rows; tests/custom breaks the files themselves",
        "stored_content": "a file holds JSON, which writes every character; there is no column for people beside it",
        "overwrite_conversation": "four verbs keep neither metadata nor times of change",
        "dying_at_commit": NO_SERVER,
        "losing_reply": NO_SERVER,
        "kill_sessions": NO_SERVER,
        "count_sessions": NO_SERVER,
        "server_zone": NO_SERVER,
        "unreachable_url": NO_SERVER,
        "locked": "the lock is one of this process and held for the length of a call",
        "explain": "there are no statements, so no plan",
        "plan_is_bounded": "there are no statements, so no plan",
        "empty_url": NO_SCHEMA,
        "schema_history": NO_SCHEMA,
        "change_schema_history": NO_SCHEMA,
    }

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="chatkeep-json-files-"))

    def close(self) -> None:
        shutil.rmtree(self.root)

    def fresh_url(self) -> str:
        return f"jsonfiles:{self.root / f'test_{uuid.uuid4().hex}'}"

    def drop(self, url: str) -> None:
        directory = self._directory(url)
        ours = directory.parent == self.root and directory.name.startswith("test_")
        assert ours, "only namespaces of this harness are dropped"
        shutil.rmtree(directory, ignore_errors=True)

    def stored_messages(self, url: str, conversation_id: str) -> int:
        return len(self._messages(url, conversation_id))

    @contextlib.contextmanager
    def clock(self, moment: dt.datetime) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state, "_now", lambda: moment)
            yield

    def fill(self, url: str, conversation_id: str, messages: int, conversations: int = 0) -> None:
        with open_repository(url) as repository:
            repository.append(conversation_id, [Message.user(f"filling {n}") for n in range(messages)])
            for n in range(conversations):
                repository.append(f"filling-{uuid.uuid4().hex}", Message.user(f"filling {n}"))

    def _directory(self, url: str) -> Path:
        return Path(url.removeprefix("jsonfiles:"))

    def _messages(self, url: str, conversation_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for path in self._directory(url).glob("*.jsonl"):
            key, *messages = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
            if key.rpartition("\x1f")[2] == conversation_id:  # of any owner
                found += messages
        return found
