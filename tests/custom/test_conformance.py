"""The contract on a person's own store: the example of docs/own-store.md, four verbs over JSON files."""

from chatkeep.conformance import harness_fixture
from chatkeep.conformance.suite import *  # noqa: F403
from tests.custom.json_files_harness import JsonFilesHarness

harness = harness_fixture(JsonFilesHarness)
