"""Packages for sandboxes: what is put together, for whom, and what is refused."""

import os
import shutil
import stat
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError, PackagesUnavailableError
from pyexec.environments.asking import RunPlan
from pyexec.environments.orders import read_answer
from pyexec.environments.packages.orders import base_of
from pyexec.environments.packages.placing import place, placed_in
from pyexec.environments.packages.service import PackagesAsked
from tests.helpers.processes import eventually
from tests.integration.environments import make_wheel, package_index, write
from tests.integration.packages import Packages, offer, offer_raw, offer_source, packages

pytestmark = pytest.mark.needs_uv


@pytest.fixture(scope="module")
def world(module_home: Path, uv_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packages]:
    with pytest.MonkeyPatch.context() as patch, package_index() as index:
        patch.setenv("UV_CACHE_DIR", str(uv_cache))
        with packages(module_home, index, tmp_path_factory.mktemp("packages")) as made:
            yield made


def test_what_is_lacking_is_there_afterwards_and_nothing_of_the_base_twice(world: Packages) -> None:
    offer(world.index, "app", requires=["baselib", "helper"])
    offer(world.index, "helper", files={"helper/__init__.py": "", "helper/deep.py": "VALUE = 42\n"})
    made = world.get("app", "basedep")
    assert dict(made.installed) == {"app": "1", "helper": "1"}
    assert made.folder is not None
    names = {path.name for path in made.folder.iterdir()}
    assert names == {"__pycache__", "app.py", "helper", "app-1.dist-info", "helper-1.dist-info"}
    assert world.imported("import app, helper.deep; print(app.VERSION, helper.deep.VALUE)", made.folder) == "1 42"
    assert "app==1" in made.lock
    assert "sha256" in made.lock
    assert world.said[0] == "resolving 2 requirements"
    assert world.said[-3:] == ["installing 2 packages", "compiling to bytecode", "ready"]


def test_it_is_compiled_for_the_python_of_the_base_and_tracebacks_name_the_place_inside(world: Packages) -> None:
    offer(world.index, "traced", files={"traced.py": "def fail():\n    raise ValueError\n"})
    made = world.get("traced")
    code = """
import importlib.util, marshal, traced
cached = importlib.util.cache_from_source(traced.__file__)
data = open(cached, "rb").read()
print(data[:4] == importlib.util.MAGIC_NUMBER, data[4], marshal.loads(data[16:]).co_filename)
"""
    assert world.imported(code, made.folder) == "True 1 /packages/traced.py"


def test_what_is_there_already_needs_no_uv_and_makes_nothing(world: Packages) -> None:
    before = world.store.digests()
    made = world.get("baselib>=1", "BaseDep")
    assert (made.folder, made.installed, world.said) == (None, {}, [])
    assert world.store.digests() == before


def test_the_same_set_is_found_again_without_uv_and_shared_by_what_comes_to_the_same(world: Packages) -> None:
    offer(world.index, "shared")
    first = world.get("shared")
    world.index.asked.clear()
    again = world.get("shared")
    assert (again.folder, world.said, world.index.asked) == (first.folder, [], [])
    fresh = world.with_settings()  # Another server, which remembers nothing.
    assert world.get("shared", sets=fresh).folder == first.folder
    assert world.said == []
    assert world.get("shared>=1", sets=fresh).digest == first.digest


def test_several_processes_that_ask_for_it_at_once_put_it_together_once(world: Packages, tmp_path: Path) -> None:
    offer(world.index, "together", requires=["beside"])
    offer(world.index, "beside")
    calls = tmp_path / "calls"
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\necho "$2" >> {calls}\nexec {world.sets._uv()} "$@"\n')
    uv.chmod(0o755)
    servers = [world.with_settings() for _ in range(2)]
    leases = [world.lease() for _ in range(4)]
    world.index.reached.clear()
    world.index.may_answer.clear()
    begun: list[subprocess.Popen[bytes]] = []
    said = [tmp_path / f"said{number}" for number in range(4)]
    for number, lease in enumerate(leases):
        sets = servers[number % 2]
        sets._uv = lambda: uv
        base = RunPlan(argv=(), strategy="uv-run", python="", python_version=None, environment=world.base)
        prepare = sets.plan(PackagesAsked(requirements=("together",), owner="me"), base, lease).prepare
        assert prepare is not None
        (tmp_path / f"order{number}").write_text(prepare.stdin)
        with (tmp_path / f"order{number}").open() as order, said[number].open("w") as hearing:
            begun.append(subprocess.Popen(prepare.argv, stdin=order, stderr=hearing, env=world.environ))
    eventually(lambda: all("\n" in one.read_text() for one in said))
    world.index.may_answer.set()
    assert [process.wait(60) for process in begun] == [0] * 4
    # One was at it, and the others waited for that.
    told = sorted(one.read_text().splitlines()[0] for one in said)
    assert told == ["resolving 1 requirement", *["waiting for another build of the same packages"] * 3]
    assert calls.read_text().split() == ["compile", "install"]
    assert len({read_answer(lease.folder).package_set for lease in leases}) == 1


def test_a_direct_conflict_names_what_was_asked_for_and_what_is_there(world: Packages) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        world.get("baselib<2")
    assert caught.value.message == "'baselib<2' was asked for, and sandboxes have baselib 2 already, which stays."
    assert caught.value.hint == "Ask for a version that goes with it, or leave baselib out."


def test_a_conflict_of_something_that_is_needed_names_both_in_one_sentence(world: Packages) -> None:
    offer(world.index, "middle", requires=["newer"])
    offer(world.index, "newer", requires=["baselib>=3"])
    with pytest.raises(PackagesUnavailableError) as caught:
        world.get("middle")
    assert caught.value.message == (
        "middle cannot be had here: sandboxes have baselib 2 already, which stays, and newer needs baselib>=3. "
        "Ask for another version, or leave it out."
    )


def test_an_older_version_is_taken_where_the_newest_does_not_go_with_what_is_there(world: Packages) -> None:
    offer(world.index, "picky", "1", requires=["baselib<3"])
    offer(world.index, "picky", "2", requires=["baselib>=3"])
    assert dict(world.get("picky").installed) == {"picky": "1"}


def test_a_package_of_which_there_is_no_wheel_is_refused_and_nothing_of_it_runs(
    world: Packages, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    offer_source(world.index, "sourceonly", canary)
    with pytest.raises(PackagesUnavailableError, match=r"^sourceonly has no wheel that fits .* never built on this"):
        world.get("sourceonly")
    assert not canary.exists()


def test_a_package_that_does_not_exist_is_said_in_uvs_own_words(world: Packages) -> None:
    with pytest.raises(PackagesUnavailableError, match="nothere was not found in the package registry"):
        world.get("nothere")


@pytest.mark.parametrize(
    ("requirement", "what"),
    [
        ("/tmp/x-1-py3-none-any.whl", "is a path on this machine"),
        ("./project", "is a path on this machine"),
        ("x @ file:///tmp/x-1-py3-none-any.whl", "is a path on this machine"),
        ("x @ https://example.org/x-1-py3-none-any.whl", "is an address"),
        ("x @ git+https://example.org/x", "is a repository"),
        ("-e ./project", "is editable"),
        ("--index-url=https://example.org", "is an option for the installer"),
        ("-r requirements.txt", "is an option for the installer"),
        ("-i https://example.org", "is an option for the installer"),
        ("a b c", "cannot be read"),
        ("six\n--index-url https://example.org", "line break or control character"),
    ],
)
def test_only_names_are_taken(world: Packages, requirement: str, what: str) -> None:
    with pytest.raises(InvalidArgumentError, match=what):
        world.get(requirement)


def test_an_index_of_the_callers_own_is_refused_unless_the_operator_allows_it(world: Packages) -> None:
    with pytest.raises(InvalidArgumentError, match="index_url was given"):
        world.get("x", index_url="https://example.org/simple")
    allowing = world.with_settings(sources=("index", "other-indexes"))
    with package_index() as other:
        offer(other, "elsewhere")
        made = world.get("elsewhere", sets=allowing, index_url=f"{other.url}/simple")
    assert dict(made.installed) == {"elsewhere": "1"}


def test_wheels_at_paths_are_taken_where_the_operator_allows_it_and_projects_are_not(
    world: Packages, tmp_path: Path
) -> None:
    allowing = world.with_settings(sources=("index", "paths"))
    wheel = make_wheel(tmp_path, "local", "1", {"local.py": "VALUE = 7\n"})
    made = world.get(str(wheel), sets=allowing)
    assert world.imported("import local; print(local.VALUE)", made.folder) == "7"
    with pytest.raises(InvalidArgumentError, match="is no wheel, which would have to be built"):
        world.get(str(tmp_path), sets=allowing)


def test_what_the_operator_denies_is_refused_however_it_is_written_and_whoever_needs_it(world: Packages) -> None:
    offer(world.index, "evil_lib")
    offer(world.index, "needs_evil", requires=["evil-lib"])
    denying = world.with_settings(denied=("evil-lib",))
    with pytest.raises(InvalidArgumentError, match="the operator has denied evil-lib"):
        world.get("Evil.Lib", sets=denying)
    with pytest.raises(PackagesUnavailableError, match="needs_evil cannot be had: the operator has denied evil-lib"):
        world.get("needs_evil", sets=denying)
    assert world.get("needs_evil").installed.keys() == {"needs-evil", "evil-lib"}


def test_where_only_some_are_allowed_all_that_is_needed_must_be_among_them(world: Packages) -> None:
    offer(world.index, "good", requires=["extra-part", "baselib"])
    offer(world.index, "extra_part")
    some = world.with_settings(allowed=("good",))
    with pytest.raises(InvalidArgumentError, match="other is not among the packages") as caught:
        world.get("other", sets=some)
    assert caught.value.hint == "Allowed are: good."
    with pytest.raises(PackagesUnavailableError, match="extra-part is not among the packages"):
        world.get("good", sets=some)
    assert world.get("good", sets=world.with_settings(allowed=("good", "extra-part"))).folder is not None


def test_where_an_index_may_be_private_each_principal_has_sets_of_their_own(world: Packages) -> None:
    offer(world.index, "secretive")
    mine = world.get("secretive", owner="one")
    assert world.get("secretive", owner="one").digest == mine.digest
    theirs = world.get("secretive", owner="two")
    assert theirs.digest != mine.digest
    assert world.said[0] == "resolving 1 requirement"


@pytest.mark.exhaustive
def test_what_comes_from_where_one_caller_says_is_not_remembered_by_uv(world: Packages, uv_cache: Path) -> None:
    allowing = world.with_settings(sources=("index", "other-indexes"))
    with package_index("user", "password") as other:
        offer(other, "hidden_one")
        url = f"http://user:password@127.0.0.1:{other.port}/simple"
        made = world.get("hidden_one", sets=allowing, index_url=url)
    assert made.folder is not None
    assert not list(uv_cache.rglob("*hidden?one*"))
    kept = [path for path in world.store.root.rglob("*") if path.is_file() and b"password" in path.read_bytes()]
    assert kept == []
    with pytest.raises(PackagesUnavailableError):
        world.get("hidden_one", sets=allowing, owner="other")


def test_a_plan_that_is_ready_is_leased_and_stays_for_as_long(world: Packages) -> None:
    offer(world.index, "leased")
    world.get("leased")
    lease = world.lease()
    made = world.sets.put_together(PackagesAsked(requirements=("leased",), owner="me"), world.base, lease)
    assert world.store.holders(made.digest) != []
    assert not world.store.evict(made.digest, at_once=True)


@pytest.mark.exhaustive
def test_sets_are_removed_in_their_time(world: Packages) -> None:
    offer(world.index, "aged")
    made = world.get("aged")
    leases = world.store.root / "leases" / made.digest
    for lease in leases.iterdir():
        lease.unlink()
    marker = world.store.folder(made.digest) / "environment.json"
    marker.write_text(marker.read_text().replace('"created_at": ', '"created_at": -'))
    os.utime(leases, (1, 1))
    world.engine.services.environments.sweep()
    assert made.digest not in world.store.digests()
    assert world.get("aged").digest == made.digest


# -- wheels that mean no good ------------------------------------------------------------------------------------------


def test_nothing_of_a_wheel_is_run_on_this_machine(world: Packages, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    trap = f"open({str(canary)!r}, 'a').write(__file__ if '__file__' in globals() else 'pth')\n"
    files = {
        "trap.py": "VALUE = 1\n",
        "trap_now.pth": f"import os; open({str(canary)!r}, 'a').write('pth')\n",
        "sitecustomize.py": trap,
        "usercustomize.py": trap,
        "encodings/__init__.py": trap,
        "os.py": trap,
        "compileall.py": trap,
        "py_compile.py": trap,
        "trap-1.data/scripts/sh": f"#!/bin/sh\ntouch {canary}\n",
        "trap-1.data/scripts/trap": f"#!python\nopen({str(canary)!r}, 'w')\n",
    }
    offer(world.index, "trap", files=files)
    offer(world.index, "after_trap")
    made = world.get("trap", "after_trap")
    into = tmp_path / "session" / "packages"
    world.add("trap", into=into)
    world.add("after_trap", into=into)  # With all of it in the folder that the next one is for.
    assert not canary.exists()
    assert made.folder is not None
    assert not (made.folder / "bin").exists()
    assert world.imported("import trap, os; print(trap.VALUE, os.sep)", made.folder) == "1 /"
    assert not canary.exists()


def test_uv_starts_no_python_but_the_one_that_sandboxes_are_made_with(world: Packages, tmp_path: Path) -> None:
    offer(world.index, "observed", files={"observed.py": "", "observed.pth": "import nothing_there\n"})
    lease = world.lease()
    plan = world.with_settings()._plan(
        PackagesAsked(requirements=("observed",), owner="me"), base_of(world.base), lease
    )
    assert plan.prepare is not None
    trace = tmp_path / "trace"
    tracer = ("strace", "-f", "-qq", "-e", "trace=execve", "-o", str(trace))
    environ = {**world.environ, "UV_CACHE_DIR": str(tmp_path / "cache")}  # It knows no interpreter yet.
    subprocess.run(
        [*tracer, *plan.prepare.argv], input=plan.prepare.stdin, env=environ, text=True, check=True, capture_output=True
    )
    started = [line.split('execve("')[1] for line in trace.read_text().splitlines() if "execve(" in line]
    pythons = [one for one in started if "python" in one.partition('"')[0].rpartition("/")[2]]
    own, *others = [one.partition('"')[0] for one in pythons]
    assert own == plan.prepare.argv[0]
    assert set(others) == {str(world.base.python.resolve())}
    assert all('"-I"' in one for one in pythons)
    assert not [one for one in started if str(world.base.python.parent) in one.partition('"')[0]]


def test_names_that_climb_lead_nowhere(world: Packages, tmp_path: Path) -> None:
    offer_raw(
        world.index,
        "climbing",
        [
            (zipfile.ZipInfo("../../../climbed.txt"), "x"),
            (zipfile.ZipInfo(f"{tmp_path}/absolute.txt"), "x"),
            (zipfile.ZipInfo("climbing-1.data/data/../../../climbed.txt"), "x"),
            (zipfile.ZipInfo("climbing-1.data/purelib/../../../../climbed.txt"), "x"),
        ],
    )
    home = world.engine.home
    outside = {path for path in home.rglob("*") if "climbed" in path.name}
    try:
        made = world.get("climbing")
        own = made.folder
    except PackagesUnavailableError:
        own = None
    found = {path for path in home.parent.rglob("*climbed*") if own is None or not path.is_relative_to(own)} - outside
    assert (found, list(tmp_path.iterdir())) == (set(), [])


def test_links_become_no_links_and_special_bits_are_gone(world: Packages) -> None:
    link = zipfile.ZipInfo("linked/passwd.txt")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    special = zipfile.ZipInfo("linked/special.sh")
    special.create_system, special.external_attr = 3, 0o106777 << 16
    closed = zipfile.ZipInfo("linked/closed.txt")
    closed.create_system, closed.external_attr = 3, 0o100000 << 16
    offer_raw(world.index, "linked", [(link, "/etc/passwd"), (special, "#!/bin/sh"), (closed, "x")])
    folder = world.get("linked").folder
    assert folder is not None
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), path
        assert mode & stat.S_IROTH, path
        assert not mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH), path


@pytest.mark.parametrize("times", [1, 3], ids=["in one file", "in several"])
@pytest.mark.exhaustive
def test_more_than_may_be_unpacked_is_refused_and_nothing_of_it_stays(world: Packages, times: int) -> None:
    size = 5_000_000 // times
    name = f"bomb{times}"
    files = {f"{name}/{number}.bin": b"\0" * size for number in range(times)}
    offer(world.index, name, files={**files, f"{name}/__init__.py": ""})
    before = set(world.store.digests())
    with pytest.raises(PackagesUnavailableError, match=r"come to more than 4 MB.*PYEXEC_PACKAGES_MB"):
        world.get(name, sets=world.with_settings(size=4 * 1024 * 1024))
    assert set(world.store.digests()) == before
    assert world.get(name).folder is not None


def test_more_than_so_many_files_are_refused(world: Packages) -> None:
    offer(world.index, "crumbs", files={f"crumbs/{number}.txt": "x" for number in range(60)})
    with pytest.raises(PackagesUnavailableError, match="have more than 50 files"):
        world.get("crumbs", sets=world.with_settings(files=50))


def test_sources_that_no_parser_likes_are_left_uncompiled(world: Packages) -> None:
    files = {
        "nested.py": "x = " + "(" * 5000 + ")" * 5000,
        "nulls.py": b"\0\0",
        "folding.py": "x = '-' * 4096 * 1000000000 * 1000000000\n",
        "fine.py": "VALUE = 3\n",
    }
    offer(world.index, "unparsable", files=files)
    made = world.get("unparsable")
    assert world.imported("import fine; print(fine.VALUE, bool(fine.__cached__))", made.folder) == "3 True"


# -- sessions that live ------------------------------------------------------------------------------------------------


def test_packages_are_added_to_those_a_session_has_and_only_what_is_new_is_made(
    world: Packages, tmp_path: Path
) -> None:
    offer(world.index, "first", requires=["common"])
    offer(world.index, "common")
    offer(world.index, "second", requires=["common", "baselib"])
    into = tmp_path / "session" / "packages"
    assert world.add("first", into=into).installed.keys() == {"first", "common"}
    before = {path.name: path.stat().st_ino for path in into.iterdir() if path.suffix == ".py"}
    added = world.add("second", into=into)
    assert added.installed.keys() == {"second"}
    assert placed_in(into) == ("common==1", "first==1", "second==1")
    assert world.imported("import first, second, common; print('all')", into) == "all"
    assert {name: (into / name).stat().st_ino for name in before} == before
    assert world.add("second", "first", into=into).folder is None
    assert not [name for name in os.listdir(into) if name.startswith(".")]


def test_what_a_session_has_stays_and_a_conflict_with_it_names_both(world: Packages, tmp_path: Path) -> None:
    offer(world.index, "kept", "1")
    offer(world.index, "kept", "2")
    offer(world.index, "wants_kept", requires=["kept>=2"])
    into = tmp_path / "session" / "packages"
    world.add("kept<2", into=into)
    before = _listing(into)
    with pytest.raises(InvalidArgumentError, match=r"'kept>=2' was asked for, and this session has kept 1 already"):
        world.add("kept>=2", into=into)
    with pytest.raises(PackagesUnavailableError, match=r"^wants-kept cannot be had here: this session has kept 1 alr"):
        world.add("wants-kept", into=into)
    assert _listing(into) == before


@pytest.mark.exhaustive
def test_packages_that_share_a_folder_are_put_into_it_beside_each_other(world: Packages, tmp_path: Path) -> None:
    offer(world.index, "part_a", files={"space/a/__init__.py": "A = 1\n"})
    offer(world.index, "part_b", files={"space/b/__init__.py": "B = 2\n"})
    into = tmp_path / "session" / "packages"
    world.add("part-a", into=into)
    world.add("part-b", into=into)
    assert world.imported("import space.a, space.b; print(space.a.A + space.b.B)", into) == "3"


def test_a_file_that_is_there_otherwise_is_not_replaced_and_nothing_else_is_placed(
    world: Packages, tmp_path: Path
) -> None:
    offer(world.index, "owner_a", files={"both.py": "WHO = 'a'\n"})
    offer(world.index, "owner_b", files={"both.py": "WHO = 'b'\n", "another.py": ""})
    into = tmp_path / "session" / "packages"
    world.add("owner-a", into=into)
    before = _listing(into)
    with pytest.raises(PackagesUnavailableError, match=r"bring a file 'both.py', of which this session has another"):
        world.add("owner-b", into=into)
    assert _listing(into) == before
    assert placed_in(into) == ("owner-a==1",)


def test_a_package_appears_whole_for_who_looks_meanwhile(tmp_path: Path) -> None:
    files, into = tmp_path / "files", tmp_path / "into"
    for number in range(300):
        write(files / "whole", {f"m{number}.py": "", "__init__.py": ""})
    write(files, {"whole-1.dist-info/METADATA": "Name: whole\nVersion: 1\n"})
    into.mkdir()
    seen: set[int] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            with suppress(FileNotFoundError):
                seen.add(len(os.listdir(into / "whole")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(10):
            place(files, into)
            shutil.rmtree(into / "whole-1.dist-info")
            (into / "whole").rename(tmp_path / f"old{number}")
    finally:
        over.set()
        watcher.join()
    assert seen == {301}


@pytest.mark.exhaustive
def test_a_session_goes_on_having_what_is_removed_from_the_sets(world: Packages, tmp_path: Path) -> None:
    offer(world.index, "lasting")
    into = tmp_path / "session" / "packages"
    made = world.add("lasting", into=into)
    shutil.rmtree(world.store.folder(made.digest))
    assert world.imported("import lasting; print(lasting.VERSION)", into) == "1"


def _listing(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path.relative_to(folder)), path.stat().st_ino) for path in folder.rglob("*"))
