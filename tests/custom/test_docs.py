"""docs/own-store.md, run as it stands: the store, its URL, and the suite over it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs/own-store.md"


def test_the_page_runs_as_written(tmp_path: Path) -> None:
    """The first block and the plugin make the module, the harness is the test; a few rules of the suite are enough."""
    store, plugin, suite = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)[:3]
    (tmp_path / "mydict.py").write_text(f"{store}\n{plugin}", encoding="utf-8")
    (tmp_path / "test_mydict.py").write_text(suite, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "C01 or C04 or C24 or Capabilities"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert " passed" in run.stdout
