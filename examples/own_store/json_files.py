"""A store of one's own: each conversation is a file of JSON lines in a directory, `jsonfiles:DIRECTORY`.

The first line is the id, each further one a message. A directory belongs to one process at a time: several would
overwrite each other's appends, so the store doesn't claim otherwise.
"""

import hashlib
import json
import os
from pathlib import Path

from chatkeep import Capabilities, ConfigurationError, Message
from chatkeep.custom import ChatMemoryStore, register_backend, store_plugin


class JsonFileStore(ChatMemoryStore):
    capabilities = Capabilities(
        max_message_bytes=16 * 1024 * 1024,
        durable=True,
        atomic_replace=True,
        concurrent_appends=True,
        conditional_writes=True,
    )

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)

    def find_conversation_ids(self) -> list[str]:
        ids = []
        for path in self.directory.glob("*.jsonl"):
            with path.open(encoding="ascii") as file:
                ids.append(json.loads(file.readline()))
        return ids

    def find_by_conversation_id(self, conversation_id: str) -> list[Message]:
        try:
            lines = self._path(conversation_id).read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []
        return [Message.from_dict(json.loads(line)) for line in lines[1:]]

    def save_all(self, conversation_id: str, messages: list[Message]) -> None:
        path = self._path(conversation_id)
        with path.with_suffix(".new").open("w", encoding="ascii") as file:
            for value in (conversation_id, *(message.to_dict() for message in messages)):
                file.write(json.dumps(value) + "\n")
            file.flush()
            os.fsync(file.fileno())
        path.with_suffix(".new").replace(path)  # a reader sees the old file or the new one
        self._sync()

    def delete_by_conversation_id(self, conversation_id: str) -> None:
        self._path(conversation_id).unlink(missing_ok=True)
        self._sync()

    def _path(self, conversation_id: str) -> Path:
        # A hash: ids hold slashes, are longer than file names may be, and differ by case alone.
        return self.directory / f"{hashlib.sha256(conversation_id.encode()).hexdigest()}.jsonl"

    def _sync(self) -> None:
        if os.name == "posix":  # where the names of a directory must be written out by themselves
            directory = os.open(self.directory, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)


def open_store(url) -> JsonFileStore:  # type: ignore[no-untyped-def]
    if not url.database:
        raise ConfigurationError("jsonfiles: name a directory, as in jsonfiles:./conversations")
    return JsonFileStore(url.database)


BACKEND = store_plugin("jsonfiles", open_store)
register_backend(BACKEND)
