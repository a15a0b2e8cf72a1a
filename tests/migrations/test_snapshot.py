"""The schema that all steps together make, as the engine describes it: a change of it is seen in review.

With CHATKEEP_UPDATE_SNAPSHOTS=1 the test writes the file instead of comparing it.
"""

import json
import os
from pathlib import Path

from chatkeep.migrations.runner import migrate
from tests.migrations.places import Place

SNAPSHOTS = Path(__file__).parent / "snapshots"


def test_the_steps_make_the_schema_of_the_snapshot(place: Place) -> None:
    with place.target() as target:
        migrate(target)
    path = SNAPSHOTS / f"{place.backend}.json"
    found = json.loads(json.dumps(place.schema()))
    if os.environ.get("CHATKEEP_UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert found == json.loads(path.read_text(encoding="utf-8"))
