"""The benchmarks run and print their table. What they measure is nothing that a test could hold to."""

import os
import subprocess
import sys
from pathlib import Path

import chatkeep

REPOSITORY_ROOT = Path(__file__).resolve().parent.parent


def test_a_quick_run_prints_and_writes_the_table(tmp_path):
    written = tmp_path / "results.md"

    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--backend", "sqlite", "--output", str(written)],
        cwd=REPOSITORY_ROOT,
        env={**os.environ, "PYTHONPATH": str(Path(chatkeep.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    for shown in (ended.stdout, written.read_text(encoding="utf-8")):
        for work in ("append a turn of 2", "read the newest 20", "peak memory of exporting"):
            assert work in shown
    assert "postgresql" not in ended.stdout.lower()
    assert str(Path.home()) not in written.read_text(encoding="utf-8")
