"""The examples run without a network, say what they should, and their models speak to the providers' real SDKs."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from chatkeep import Message, open_repository
from chatkeep.advisors import MessageChatMemoryAdvisor, advise
from chatkeep.memory import MessageWindowChatMemory

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "advisors"
SAYS = {
    "support_bot": [
        "bot: Your order A-17 left the warehouse on Monday.",
        "bot: It was A-17.",
        "stored: system, user, assistant, tool, assistant, user, assistant",
    ],
    "streaming": [
        "stored: assistant: 'Once upon a time ' (broken off)",
        "stored: user: 'Where were we?'",
        "stored: assistant: 'We were at: once upon a time.'",
    ],
    "summaries": [
        "answer: You are Ada from Oslo.",
        "in view: system: Summary of the conversation so far:",
        "in the log: 14 messages",
    ],
    "recall": ['recalled: {"role": "user", "text": "My dog is called Rex."}', "model: Rex."],
}


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs_as_it_is(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in SAYS[name] if line not in lines] == []


def test_every_example_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*SAYS, "models"}


@pytest.fixture(scope="module")
def models() -> Any:
    spec = importlib.util.spec_from_file_location("example_models", FOLDER / "models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OPENAI_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
ANTHROPIC_CALL = [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]


class Provider(BaseHTTPRequestHandler):
    """As much of the two APIs as the examples use: first a call of a tool, then a text; streams are texts."""

    requests: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(body)
        answered = any(
            message["role"] == "tool"
            or any(isinstance(b, dict) and b["type"] == "tool_result" for b in message["content"] or ())
            for message in body["messages"]
        )
        of_openai = self.path.endswith("/chat/completions")
        if body.get("stream"):
            self.send("text/event-stream", openai_events() if of_openai else anthropic_events())
        elif of_openai:
            message = {"role": "assistant", "content": "Done."} if answered else OPENAI_CALL
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            reply = {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            self.send("application/json", json.dumps(reply))
        else:
            content = [{"type": "text", "text": "Done."}] if answered else ANTHROPIC_CALL
            self.send("application/json", json.dumps(anthropic_reply(content)))

    def send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def anthropic_reply(content: list[Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    reply = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": usage}
    return {**reply, "stop_reason": "end_turn", "stop_sequence": None}


def openai_events() -> str:
    chunks = [
        {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
            {"index": 0, "delta": {"content": text}, "finish_reason": None}
        ]}
        for text in ("Do", "ne.")
    ]  # fmt: skip
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def anthropic_events() -> str:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**anthropic_reply([]), "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            for text in ("Do", "ne.")
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


@pytest.fixture
def provider() -> Iterator[str]:
    Provider.requests.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["openai", "anthropic"])
def sdk(request: pytest.FixtureRequest, provider: str, models: Any) -> Iterator[tuple[Any, Any]]:
    """The two models over the real client."""
    if request.param == "openai":
        from openai import OpenAI

        with OpenAI(api_key="not-a-key", base_url=f"{provider}/v1", max_retries=0) as client:
            yield models.openai(client, "m"), models.openai_streaming(client, "m")
    else:
        from anthropic import Anthropic

        with Anthropic(api_key="not-a-key", base_url=provider, max_retries=0) as client:
            yield models.anthropic(client, "m"), models.anthropic_streaming(client, "m")


def test_an_sdk_takes_the_place_of_the_script(models: Any, sdk: tuple[Any, Any]) -> None:
    whole, streaming = sdk
    with open_repository("inprocess:") as repository:
        advisor = MessageChatMemoryAdvisor(MessageWindowChatMemory(repository))
        bot = advise(models.with_tools(whole, {"look": lambda arguments: "seen"}), advisor)
        answer = bot.call([Message.system("Be brief."), Message.user("Look!")], conversation_id="one")
        assert [message.role for message in answer.messages] == ["assistant", "tool", "assistant"]
        assert answer.text == "Done."
        with advise(streaming, advisor).stream([Message.user("And?")], conversation_id="one") as stream:
            assert list(stream) == ["Do", "ne."]
        stored = repository.find_by_conversation_id("one")
    assert [message.role for message in stored] == [
        "system", "user", "assistant", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip
    assert len(Provider.requests) == 3
    assert "Be brief." in json.dumps(Provider.requests[-1])
