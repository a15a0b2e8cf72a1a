"""Rows that older versions wrote are read for ever, and today's rows are theirs to the byte.

format-1 holds, for one message of each kind, the row as format version 1 stored it and the dict form of the message.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from chatkeep import Message, times
from chatkeep.storage import codec
from chatkeep.storage.record import MessageRecord
from tests.golden import make_format_1

FOLDER = Path(__file__).parent / "format-1"
FILES = sorted(FOLDER.glob("*.json"))


def read(path: Path) -> tuple[MessageRecord, dict[str, Any]]:
    data = json.loads(path.read_text(encoding="ascii"))
    row = data["row"]
    return MessageRecord(**{**row, "created_at": times.parse_time(row["created_at"], "created_at")}), data["message"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stored_row_reads_as_the_message_it_was(path: Path) -> None:
    record, expected = read(path)
    message = codec.decode(record, "golden")
    # As text: 1 and 1.0, or 0.0 and -0.0, are equal in Python and not the same.
    assert json.dumps(message.to_dict(), sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert message == Message.from_dict(expected)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_todays_encoder_writes_the_same_bytes(path: Path) -> None:
    record, expected = read(path)
    assert codec.encode(Message.from_dict(expected), "message", sys.maxsize) == record


def test_there_is_a_file_of_every_kind() -> None:
    assert sorted(path.stem for path in FILES) == sorted(make_format_1.KINDS)
