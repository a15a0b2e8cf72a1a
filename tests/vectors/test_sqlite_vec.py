"""sqlite-vec itself, on a Python whose sqlite3 can load it: this one, or another of the same version on the machine."""

import os
import shutil
import site
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import chatkeep
from chatkeep import ConfigurationError, open_repository
from chatkeep.vectors import VectorMemory

ROOT = Path(__file__).resolve().parents[2]
LOADS = hasattr(sqlite3.Connection, "enable_load_extension")
PACKAGES = (str(ROOT), str(Path(chatkeep.__file__).parents[1]), *site.getsitepackages())
"""Not this interpreter's own library, which another build of Python can't use."""
PROBE = "import sqlite3, sys; print(sys.version_info[:2], hasattr(sqlite3.Connection, 'enable_load_extension'))"

pytestmark = pytest.mark.sqlite


def able_python() -> str | None:
    """An interpreter that loads extensions and can use the packages installed here."""
    wanted = f"{sys.version_info[:2]} True"
    for candidate in (sys.executable, "/usr/bin/python3", shutil.which(f"python3.{sys.version_info[1]}")):
        if candidate and Path(candidate).exists():
            done = subprocess.run([candidate, "-c", PROBE], capture_output=True, text=True, check=False)
            if done.stdout.strip() == wanted:
                return candidate
    return None


def test_the_rules_of_vectors_hold_with_the_extension() -> None:
    """The suite's own class, sync and async; the harness says distance=None there, which is sqlite-vec."""
    python = able_python()
    if python is None:
        pytest.skip("no Python of this version here can load SQLite extensions")
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance/test_sqlite.py", "-k", "InTables"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PACKAGES)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout.splitlines()[-1]


@pytest.mark.skipif(LOADS, reason="this Python can load extensions")
def test_a_python_that_cannot_load_it_is_told_what_to_do(tmp_path: Path) -> None:
    """And nothing else is taken in its place."""
    with open_repository(f"sqlite:///{tmp_path}/chat.db") as repository:
        memory = VectorMemory(repository, lambda texts: [[1.0]] * len(texts), model="m")
        with pytest.raises(ConfigurationError, match=r"--enable-loadable-sqlite-extensions.*distance=\"numpy\""):
            memory.search("thread", "dog")
