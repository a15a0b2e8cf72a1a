"""The harness of the example store: its conversations are files, so looking behind it is reading them."""

import json
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

from chatkeep.capabilities import MAX_MESSAGE_BYTES, Capabilities
from chatkeep.conformance import StoreHarness
from examples.own_store import json_files


class JsonFilesHarness(StoreHarness):
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

    def _directory(self, url: str) -> Path:
        return Path(url.removeprefix("jsonfiles:"))

    def _messages(self, url: str, conversation_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for path in self._directory(url).glob("*.jsonl"):
            key, *messages = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
            if key.rpartition("\x1f")[2] == conversation_id:  # of any owner
                found += messages
        return found
