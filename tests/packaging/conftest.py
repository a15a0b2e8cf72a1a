"""The marker of these tests, and the distributions they look at, built once."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "packaging: builds and installs the package; needs the package index")


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Without the checkout on the path, so that only what is installed is found."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CHATKEEP_"))}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**clean, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def succeed(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = run(*command, cwd=cwd, env=env)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    succeed(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


class Environment:
    """A virtual environment with nothing in it. This one's pip installs into it: a pip of its own takes longer."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder)
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()

    def install(self, *arguments: str | Path) -> None:
        pip = (sys.executable, "-m", "pip", "--python", str(self.bin / "python"))
        done = run(*pip, "--quiet", "--disable-pip-version-check", "install", *arguments, cwd=self.work)
        if done.returncode == 0:
            return
        said = done.stderr.strip().splitlines()
        if not os.environ.get("CI") and any("Connection" in line or "Retrying" in line for line in said):
            pytest.skip(f"the package index can't be reached: {said[-1]}")
        pytest.fail(done.stderr, pytrace=False)

    def site_packages(self) -> Path:
        return Path(self.python("import sysconfig; print(sysconfig.get_path('purelib'))"))

    def python(self, code: str) -> str:
        # -W error: a user with strict warnings must be able to import it.
        return succeed(self.bin / "python", "-W", "error", "-c", code, cwd=self.work).strip()

    def chatkeep(self, *arguments: str) -> str:
        return succeed(self.bin / "chatkeep", *arguments, cwd=self.work)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """The wheel and what it depends on, no extra."""
    environment = Environment(tmp_path_factory.mktemp("installed") / "venv")
    environment.install(wheel)
    return environment
