"""What is shipped: the right files, and a package that works where only it is installed."""

import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from chatkeep.registry import BUILTIN, find_backend
from tests.packaging.conftest import ROOT, Environment, run, succeed

pytestmark = pytest.mark.packaging

PLUGINS = [find_backend(name) for name in BUILTIN]
WITH_SCHEMA = {plugin.name for plugin in PLUGINS if plugin.migrations is not None}
SERVERS = [plugin.name for plugin in PLUGINS if not plugin.embedded]
OPEN_SQLITE = """
from chatkeep import Message, open_repository
from chatkeep.migrations.files import schema_directory
with open_repository("sqlite:///own.db") as repository:
    repository.append("a", [Message.user("hello")])
    assert repository.find_by_conversation_id("a")[-1].text == "hello"
import chatkeep
print(chatkeep.__file__)
print(schema_directory("postgresql"))
"""


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_schema_files_to_the_byte(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name: archive.read(name) for name in archive.namelist() if name.startswith("chatkeep/schemas/")}
    expected = {
        f"chatkeep/{path.relative_to(ROOT).as_posix()}": path.read_bytes()
        for path in (ROOT / "schemas").rglob("V*.*")
        if path.is_file()
    }
    assert shipped == expected
    assert {name.split("/")[2] for name in shipped} == WITH_SCHEMA


def test_the_wheel_holds_what_the_code_opens_at_run_time(wheel: Path) -> None:
    found = names(wheel)
    assert {"chatkeep/py.typed", "chatkeep/cli/conversation.json"} <= found
    modules = {f"chatkeep/{path.relative_to(ROOT / 'src' / 'chatkeep').as_posix()}" for path in sources()}
    assert modules <= found


def sources() -> list[Path]:
    package = ROOT / "src" / "chatkeep"
    return [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    assert {name.partition("/")[0].partition("-")[0] for name in names(wheel)} == {"chatkeep"}
    assert not [name for name in names(wheel) if "tests/" in name or name.endswith((".pyc", ".db"))]


def test_the_wheel_made_from_the_sdist_equals_the_one_made_from_a_checkout(wheel: Path, tmp_path: Path) -> None:
    succeed(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (direct,) = tmp_path.glob("*.whl")
    assert names(direct) == names(wheel)


def test_the_sdist_holds_the_tests_and_no_leftovers(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert {"tests/migrations/test_files.py", "docs/migrations.md", "Makefile", "pyproject.toml"} <= found
    assert not [name for name in found if "__pycache__" in name or name.startswith((".venv", "dist/", "build/"))]


def test_it_works_where_only_the_wheel_is_installed(installed: Environment) -> None:
    module, schemas = installed.python(OPEN_SQLITE).splitlines()
    assert Path(module).is_relative_to(installed.folder)
    assert Path(schemas) == Path(module).parent / "schemas" / "postgresql"


def test_the_commands_work_there(installed: Environment) -> None:
    installed.chatkeep("demo")
    installed.chatkeep("migrate", "--url", "sqlite:///commands.db")
    installed.chatkeep("validate", "--url", "sqlite:///commands.db")
    assert "applied" in installed.chatkeep("status", "--url", "sqlite:///commands.db")
    for backend in WITH_SCHEMA:
        printed = installed.chatkeep("sql", "--all", "--url", f"{backend}:")
        assert re.search(r"CREATE TABLE (IF NOT EXISTS )?(dbo\.)?chat_message", printed), backend


@pytest.mark.parametrize("backend", SERVERS)
def test_a_missing_extra_is_named(installed: Environment, backend: str) -> None:
    url = f"{backend}://someone@127.0.0.1/nowhere"
    done = run(installed.bin / "chatkeep", "status", "--url", url, cwd=installed.work)
    assert done.returncode == 2
    assert f"pip install 'chatkeep[{backend}]'" in " ".join((done.stdout + done.stderr).split())


def test_an_editable_install_uses_the_checkout_s_files(installed: Environment, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install("--no-deps", "--editable", ROOT)
    # The dependencies are lent by the other environment, behind everything of its own.
    (environment.site_packages() / "zz_lent.pth").write_text(f"{installed.site_packages()}\n")
    module, schemas = environment.python(OPEN_SQLITE).splitlines()
    assert Path(module) == ROOT / "src" / "chatkeep" / "__init__.py"
    assert Path(schemas) == ROOT / "schemas" / "postgresql"


def test_the_files_are_found_inside_of_a_zip(wheel: Path, tmp_path: Path) -> None:
    code = (
        "import json, chatkeep\nfrom chatkeep.migrations.files import schema_files\n"
        "from chatkeep import open_repository\nopen_repository('sqlite://').close()\n"
        "print(json.dumps([chatkeep.__file__, [f.checksum for f in schema_files('sqlite')]]))"
    )
    where, checksums = json.loads(succeed(sys.executable, "-c", code, cwd=tmp_path, env={"PYTHONPATH": str(wheel)}))
    assert where.startswith(str(wheel))
    from chatkeep.migrations.files import schema_files

    assert checksums == [file.checksum for file in schema_files("sqlite")]
