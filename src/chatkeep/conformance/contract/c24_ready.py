"""C24 ready servers, as far as a harness goes: a namespace is usable when its URL is handed out.

The wait for servers, its bound and its failure texts are tested with the fixtures that start them.
"""

from __future__ import annotations

from chatkeep import ChatMemoryRepository
from chatkeep.conformance.harness import Form, Harness
from chatkeep.conformance.support import new_id, said, texts


class TestC24Ready:
    """No sleep and no second try between a URL and its first use."""

    def test_ten_namespaces_are_ready_at_once(self, harness: Harness, form: Form) -> None:
        """Each is empty, takes a write and gives it back; dropping it frees its place."""
        for _ in range(10):
            url = harness.fresh_url()
            try:
                with harness.open(form, url) as repository:
                    assert repository.find_conversation_ids() == []
                    conversation_id = new_id()
                    repository.append(conversation_id, said(1))
                    assert texts(repository.find_by_conversation_id(conversation_id)) == texts(said(1))
            finally:
                harness.drop(url)

    def test_namespaces_do_not_meet(self, harness: Harness, form: Form, repository: ChatMemoryRepository) -> None:
        """What is written in one is not in another."""
        conversation_id = new_id()
        url = harness.fresh_url()
        try:
            with harness.open(form, url) as other:
                other.append(conversation_id, said(1))
                assert repository.get_conversation(conversation_id) is None
        finally:
            harness.drop(url)

    def test_a_harness_drops_only_what_it_made(self, harness: Harness, namespace: str) -> None:
        """A URL of another place is refused: tests never delete somebody's data."""
        foreign = namespace.replace("test_", "prod_")
        assert foreign != namespace
        try:
            harness.drop(foreign)
        except Exception as error:
            assert type(error) is not KeyError  # noqa: PT017 (any refusal will do, a blunder will not)
        else:
            raise AssertionError(f"{foreign} was accepted for dropping")
