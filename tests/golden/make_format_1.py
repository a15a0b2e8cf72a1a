"""Writes the golden files of format version 1: one message of each kind, its row as stored and its dict form.

They were made once, read line by line against docs/stored-form.md, and are never made again: a file that exists is not
overwritten, for its rows stand for those in people's databases. `python -m tests.golden.make_format_1` adds what is
new in KINDS.
"""

import datetime as dt
import json
import sys
from pathlib import Path
from typing import Any

from chatkeep import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult, times
from chatkeep.storage import codec

FOLDER = Path(__file__).parent / "format-1"
NOON = dt.datetime(2026, 6, 1, 12, 0, 0, 123456, tzinfo=dt.UTC)


def _user(*parts: Any, **fields: Any) -> Message:
    return Message("user", parts, **fields)


KINDS: dict[str, Message] = {
    "plain-text": _user(Text("Hello, is anybody there?")),
    "empty-text": _user(Text("")),
    "no-parts": Message("assistant"),
    "system-with-name": Message("system", (Text("Be kind."),), name="policy"),
    "empty-name": _user(Text("Hi"), name=""),
    "open-role": Message("critic", (Text("Hm."),)),
    "two-texts": _user(Text("one"), Text("two")),
    "text-beside-media": _user(Text("Look:"), Media("image/png", url="https://example.org/a.png", name="a.png")),
    "media-bytes": _user(Media("application/octet-stream", bytes(range(256)))),
    "media-empty": _user(Media("image/png", b""), Media("", url="")),
    "metadata": _user(
        Text("Hi"),
        metadata={
            "": {},
            "list": [None, True, False, [], {}],
            "numbers": [0, -1, 9007199254740993, -(10**30), 1.0, -0.0, 0.1, 1e300, 5e-324],
            "text": 'quotes " \\ / \b\n\t',
        },
    ),
    "extra": Message(
        "user",
        (Text("Hi", {"cache_control": {"type": "ephemeral"}}),),
        extra={"vendor": {"trace": [1, 2]}},
    ),
    "tool-calls": Message(
        "assistant",
        (
            Text("Let me look."),
            ToolCall("call_1", "weather", '{"city": "Rome",\n "days": 3}'),
            ToolCall("call_2", "time", "", {"index": 1}),
        ),
    ),
    "tool-call-broken-arguments": Message("assistant", (ToolCall("call_1", "weather", '{"city": '),)),
    "tool-result": Message("tool", (ToolResult("call_1", "sunny", "weather"),)),
    "tool-result-error": Message("tool", (ToolResult("call_1", "", is_error=True),)),
    "tool-result-parts": Message(
        "tool", (ToolResult("call_1", (Text("see"), Media("image/png", b"\x89PNG"), Text("it"))),)
    ),
    "tool-result-nested": Message(
        "tool",
        (ToolResult("a", (ToolResult("b", "inner"),)), ToolResult("c", ())),
    ),
    "two-results": Message("tool", (ToolResult("call_1", "1"), ToolResult("call_2", "2"))),
    "thinking": Message("assistant", (Thinking("Hmm.", "c2lnbmF0dXJl"), Thinking("", ""), Text("Yes."))),
    "opaque": Message("assistant", (Opaque("server_tool_use", {"id": "x", "input": [1, 1.0]}), Opaque("ping"))),
    "scripts": _user(Text("Grüße, 你好, שלום, 👩‍👩‍👧, e\u0301, \ufeff")),
    "nul-and-surrogate": _user(Text("a\0b\ud800c"), metadata={"k\0": "\udfff"}),
    "nul-in-tool-result": Message("tool", (ToolResult("call_1", "\0"),)),
    "oldest-time": _user(Text("Hi"), created_at=dt.datetime(1000, 1, 1, tzinfo=dt.UTC)),
    "newest-time": _user(Text("Hi"), created_at=dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)),
}


def golden(kind: str, message: Message) -> dict[str, Any]:
    """The content of one file."""
    fixed = {"id": f"golden-{kind}"}
    if not kind.endswith("-time"):
        fixed["created_at"] = NOON  # type: ignore[assignment]
    whole = Message(
        message.role,
        message.parts,
        name=message.name,
        metadata=message.metadata,
        extra=message.extra,
        **{"created_at": message.created_at, **fixed},  # type: ignore[arg-type]
    )
    record = codec.encode(whole, "message", sys.maxsize)
    row = {name: getattr(record, name) for name in ("message_id", "role", "content", "body")}
    return {"row": {**row, "created_at": times.format_time(record.created_at)}, "message": whole.to_dict()}


if __name__ == "__main__":
    for kind, message in KINDS.items():
        path = FOLDER / f"{kind}.json"
        if not path.exists():
            path.write_text(json.dumps(golden(kind, message), indent=1) + "\n", encoding="ascii")
            print(path.name)
