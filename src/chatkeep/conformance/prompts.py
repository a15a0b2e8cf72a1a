"""A strict judge of prompts, written from the published rules of two chat APIs. It shares no code with the memories.

Anthropic (https://docs.anthropic.com/en/api/messages, the guides on tool use and extended thinking): the first message
is from the user; consecutive messages of a role are merged; every tool_use is answered by a tool_result in the message
right after it, and every tool_result answers a tool_use of the message right before; tool_results come first in their
message; no message and no text block is empty or white space; an assistant message doesn't end with thinking.

OpenAI (https://platform.openai.com/docs/api-reference/chat/create): an assistant message with tool_calls is followed by
tool messages that respond to each tool_call_id, and a tool message stands only there; an assistant message has content
or calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from chatkeep import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult


def problems(prompt: Sequence[Message], *, open_end: bool = False, unique_ids: bool = True) -> list[str]:
    """What a provider would refuse; `open_end`: the calls at the very end may lack results, since no user message is
    sent after them. `unique_ids`: no call id stands twice (False for histories that reuse ids)."""
    found = [
        f"system message at {i}" for i, message in enumerate(prompt) if i and message.role in ("system", "developer")
    ]
    said = [message for message in prompt if message.role not in ("system", "developer")]
    found += [f"empty system message {m.parts}" for m in prompt[:1] if m not in said and not _blocks(m)]
    if not said:
        return found
    merged = _merged(said)
    if merged[0][0] != "user":
        found.append("the first message is not the user's")
    found += [f"nothing to send in a message of role {message.role}" for message in said if not _blocks(message)]
    pending: Counter[str] = Counter()
    for number, (role, blocks) in enumerate(merged):
        last = number == len(merged) - 1
        results = Counter(block.call_id for block in blocks if isinstance(block, ToolResult))
        calls = Counter(block.id for block in blocks if isinstance(block, ToolCall))
        if role == "user":
            found += [f"result {call_id} without a call right before" for call_id in results - pending]
            lacking = pending - results
            if lacking and not (open_end and last and len(blocks) == sum(results.values())):
                found.append(f"calls {sorted(lacking)} without a result right behind")
            kinds = [isinstance(block, ToolResult) for block in blocks]
            if kinds != sorted(kinds, reverse=True):
                found.append("results behind other content")
            if calls:
                found.append("a user can't call tools")
            pending = Counter()
        else:
            if pending:
                found.append(f"calls {sorted(pending)} without a result right behind")
            if isinstance(blocks[-1] if blocks else None, Thinking):
                found.append("an assistant message ends with thinking")
            # Built-in tools of a provider are answered in the same message.
            if unanswerable := results - calls:
                found.append(f"results {sorted(unanswerable)} said by the assistant")
            pending = calls - results
            if unique_ids and any(count > 1 for count in calls.values()):
                found.append("a call id stands twice")
    if pending and not open_end:
        found.append(f"calls {sorted(pending)} without a result at the end")
    if unique_ids:
        everywhere = Counter(part.id for message in said for part in message.parts if isinstance(part, ToolCall))
        found += [f"call id {call_id} in two messages" for call_id, count in everywhere.items() if count > 1]
    return found


def _blocks(message: Message) -> list[Part]:
    """The content blocks that are sent: empty texts are left out by whoever converts a message."""
    return [part for part in message.parts if _sent(part)]


def _sent(part: Part) -> bool:
    if isinstance(part, Text):
        return bool(part.text.strip())
    return isinstance(part, (Thinking, Media, ToolCall, ToolResult, Opaque))


def _merged(messages: Sequence[Message]) -> list[tuple[str, list[Part]]]:
    """By turns of the two parties. A message of results alone is sent by the user's side."""
    merged: list[tuple[str, list[Part]]] = []
    for message in messages:
        blocks = _blocks(message)
        only_results = bool(blocks) and all(isinstance(block, ToolResult) for block in blocks)
        role = "user" if message.role in ("user", "tool") or only_results else "assistant"
        if not merged or merged[-1][0] != role or role == "assistant":
            merged.append((role, []))
        merged[-1][1].extend(blocks)
    return merged
