"""C6: what an estimate counts, and how far the heuristic may be off, measured against the exact one."""

import random
import string
import subprocess
import sys

import pytest

from chatkeep import ConfigurationError, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from chatkeep.memory import HeuristicTokenCountEstimator, OpenAiTokenCountEstimator, TokenCountEstimator
from chatkeep.memory.estimators import TOKENS_PER_IMAGE, heuristic_tokens
from chatkeep.memory.tokens import check_estimator

EXACT = OpenAiTokenCountEstimator()
ORDINARY = {
    "English": "The log is the truth and memory is a view: writing is appending, and a window reads the newest part.",
    "German": "Das Gedächtnis ist nur eine Ansicht; was gesagt wurde, bleibt vollständig im Protokoll erhalten.",
    "French": "La mémoire n'est qu'une vue : ce qui a été dit reste tout entier dans le journal des échanges.",
    "Russian": "Память — это только представление; всё сказанное остаётся в журнале целиком.",
    "Chinese": "记忆只是一个视图。所有说过的话都完整地保存在日志里。",
    "Japanese": "記憶はただの眺めであり、話されたことはすべて記録に残ります。",
    "Korean": "기억은 하나의 보기일 뿐이며 말한 것은 모두 기록에 그대로 남습니다.",
    "Arabic": "الذاكرة مجرد عرض، وكل ما قيل يبقى كاملا في السجل.",
    "Hindi": "स्मृति केवल एक दृश्य है, और जो कहा गया वह पूरा लेख में रहता है।",
    "Python": "def view(messages, limit):\n    return [m for m in messages if m.role != 'system'][-limit:]\n",
    "JSON": '{"city": "Zürich", "days": [1, 2, 3], "options": {"units": "metric", "verbose": true}}',
    "SQL": "SELECT position, content FROM chat_message WHERE conversation_key = 42 ORDER BY position DESC LIMIT 20;",
    "emoji": "Thanks! 🎉🎉 See you 👋🏽",
}
BLOCKS = [
    string.ascii_lowercase, string.ascii_uppercase, string.ascii_letters, string.digits, string.punctuation, " \n\t\r",
    string.ascii_letters + string.digits, "0123456789abcdef", *(
        "".join(map(chr, range(*block)))
        for block in [
            (1, 9), (0xA0, 0x100), (0x100, 0x250), (0x250, 0x370), (0x370, 0x400), (0x400, 0x530), (0x5D0, 0x5EB),
            (0x620, 0x700), (0x904, 0x93A), (0x985, 0x9BA), (0xB85, 0xBBA), (0xE01, 0xE3B), (0x10D0, 0x10F1),
            (0x1100, 0x1200), (0x1200, 0x137F), (0x2000, 0x2070), (0x2100, 0x2800), (0x3041, 0x3100), (0x4E00, 0xA000),
            (0xA000, 0xA48D), (0xAC00, 0xD7A4), (0xE000, 0xF900), (0xFF01, 0xFF5F), (0x1D400, 0x1D7FF),
            (0x1F300, 0x1F650), (0x20000, 0x2A000),
        ]
    ),
]  # fmt: skip


@pytest.mark.parametrize("kind", ORDINARY)
def test_the_heuristic_does_not_count_ordinary_text_too_low(kind: str) -> None:
    exact = EXACT.count_text(ORDINARY[kind])
    assert exact <= heuristic_tokens(ORDINARY[kind]) <= 3 * exact


@pytest.mark.parametrize("alphabet", BLOCKS, ids=lambda alphabet: f"U+{ord(alphabet[0]):04X}x{len(alphabet)}")
def test_the_heuristic_counts_two_thirds_of_any_text(alphabet: str) -> None:
    """The worst that a script has: its characters at random."""
    chance = random.Random(7)
    for length in (10, 100, 3000):
        text = "".join(chance.choice(alphabet) for _ in range(length))
        assert heuristic_tokens(text) >= EXACT.count_text(text) * 2 / 3 - 1


BOTH = pytest.mark.parametrize("estimator", [HeuristicTokenCountEstimator(), EXACT], ids=lambda each: each.name)


@BOTH
def test_everything_that_is_sent_is_counted(estimator: TokenCountEstimator) -> None:
    """Each addition to a message makes it longer by what it holds."""
    long = "something that takes a good many tokens to say in so many words"
    least = estimator.count_message(Message.user(long)) - estimator.count_message(Message.user(""))
    assert least >= 12
    empty = estimator.count_message(Message.assistant())
    assert empty > 0
    more = {
        "thinking": Message.assistant([Thinking(long)]),
        "a tool's name": Message.assistant(tool_calls=[ToolCall("1", long)]),
        "arguments": Message.assistant(tool_calls=[ToolCall("1", "f", long)]),
        "a result": Message.tool(long, call_id="1"),
        "a result of parts": Message.tool([Text(long)], call_id="1"),
        "a name": Message.user("", name=long),
        "opaque": Message.assistant([Opaque("x", {"said": [long]})]),
        "a text file": Message.user([Media("text/plain", long.encode())]),
        "an address": Message.user([Media("image/png", url=long)]),
    }
    for what, message in more.items():
        assert estimator.count_message(message) >= empty + least, what
    image, file = Message.user([Media("image/png", b"x")]), Message.user([Media("application/pdf", bytes(100_000))])
    assert estimator.count_message(image) >= TOKENS_PER_IMAGE
    assert estimator.count_message(file) >= 6000
    inside = Message("tool", (ToolResult("1", (Media("image/png", b"x"),)),))
    assert estimator.count_message(inside) >= TOKENS_PER_IMAGE


@BOTH
def test_any_text_is_counted(estimator: TokenCountEstimator) -> None:
    for text in ("", "\x00", "\ud800 alone", "<|endoftext|>", "a" * 200_000, "漢" * 100_000):
        assert estimator.count_message(Message.user(text)) >= 4


def test_the_exact_one_is_the_published_tokenizer() -> None:
    """Counts that OpenAI's cookbook and tiktoken's read-me state."""
    assert EXACT.count_text("antidisestablishmentarianism") == 6
    assert EXACT.count_text("2 + 2 = 4") == 7
    assert EXACT.count_text("お誕生日おめでとう") == 8
    older = OpenAiTokenCountEstimator("cl100k_base")
    assert older.count_text("antidisestablishmentarianism") == 6
    assert older.count_text("2 + 2 = 4") == 7
    assert older.count_text("お誕生日おめでとう") == 9
    assert older.name != EXACT.name


def test_the_exact_one_needs_no_network() -> None:
    """In a process that can open no socket."""
    program = (
        "import socket\n"
        "def refuse(*_, **__): raise AssertionError('a network was asked for')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "from chatkeep.memory import OpenAiTokenCountEstimator\n"
        "print(OpenAiTokenCountEstimator().count_text('hello world'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bpe_openai", None)
    with pytest.raises(ConfigurationError, match=r"chatkeep\[tokens\]"):
        OpenAiTokenCountEstimator()


def test_an_unknown_encoding_is_refused_with_the_known() -> None:
    with pytest.raises(ConfigurationError, match="cl100k_base"):
        OpenAiTokenCountEstimator("gpt2")


class Own:
    def __init__(self, name: str = "own", version: str = "1", per_request: object = 0) -> None:
        self.name, self.version, self.tokens_per_request = name, version, per_request

    def count_message(self, message: Message) -> int:
        return 1


def test_estimators_are_checked() -> None:
    assert check_estimator(Own())
    for wrong in (None, 7, "heuristic", HeuristicTokenCountEstimator, object()):
        with pytest.raises(TypeError, match="estimator"):
            check_estimator(wrong)  # type: ignore[arg-type]
    for own in (Own(name=""), Own(name="x" * 65), Own(version="ü"), Own(name="a b"), Own(per_request=-1)):
        with pytest.raises(ValueError, match="estimator"):
            check_estimator(own)
