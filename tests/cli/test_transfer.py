"""chatkeep.transfer as a library."""

import pytest

from chatkeep import ConversationNotFoundError, InvalidMessageError, Message, open_repository, transfer
from chatkeep.transfer.reading import PAGE_BYTES, entries


def test_lines_go_from_one_repository_to_another_without_text_between() -> None:
    with open_repository("inprocess:") as source, open_repository("inprocess:") as target:
        source.append("t", [Message.user("1"), Message.user("2")])
        tally = transfer.import_lines(target, transfer.export_lines(source))
        assert (tally.conversations, tally.messages, tally.new, tally.lines) == (1, 2, 2, 3)
        assert target.find_by_conversation_id("t") == source.find_by_conversation_id("t")


def test_the_tally_tells_what_went_through_before_an_error() -> None:
    tally = transfer.Tally()
    with open_repository("inprocess:") as source, open_repository("inprocess:") as target:
        source.append("t", [Message.user("1"), Message.user("2")])
        with pytest.raises(InvalidMessageError, match=r"^line 4: "):
            transfer.import_lines(target, [*transfer.export_lines(source), {"type": "surprise"}], tally=tally)
    assert (tally.messages, tally.lines) == (2, 3)


def test_an_unknown_conversation_is_an_error() -> None:
    with open_repository("inprocess:") as repository, pytest.raises(ConversationNotFoundError, match="'nope'"):
        list(transfer.export_lines(repository, ["nope"]))


def test_compare_finds_what_differs() -> None:
    with open_repository("inprocess:") as source, open_repository("inprocess:") as target:
        for conversation_id in ("same", "fewer", "none"):
            source.append(conversation_id, [Message.user("1"), Message.user("2")])
        transfer.copy(source, target, conversation_ids=["same", "fewer"])
        target.delete_messages("fewer", [source.find_by_conversation_id("fewer")[0].id])
        found = [(one.conversation_id, one.source, one.target) for one in transfer.compare(source, target)]
    assert found == [("fewer", 2, 1), ("none", 2, 0)]


def test_progress_is_told_while_it_runs() -> None:
    told: list[int] = []
    with open_repository("inprocess:") as source, open_repository("inprocess:") as target:
        source.append("t", [Message.user(str(number)) for number in range(1000)])
        transfer.copy(source, target, batch=100, progress=lambda tally: told.append(tally.messages))
    assert told[:10] == list(range(100, 1001, 100))


def test_pages_shrink_where_messages_are_large() -> None:
    sizes: list[int] = []
    with open_repository("inprocess:") as repository:
        repository.append("t", [Message.user("x" * (PAGE_BYTES // 4)) for _ in range(120)])
        real = repository.history

        def history(conversation_id: str, **options: object) -> object:
            page = real(conversation_id, **options)  # type: ignore[arg-type]
            sizes.append(len(page.items))
            return page

        repository.history = history  # type: ignore[method-assign, assignment]
        assert len(list(entries(repository, "t"))) == 120
    assert sizes[0] == 50
    assert max(sizes[1:]) <= 4
