"""The files of sessions, by their tools and their resource."""

import base64
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastmcp.exceptions import McpError
from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent, TextResourceContents

from pyexec.domain.limits import MEGABYTE, FileLimits
from tests.end_to_end.session_files import ANN, BEN, OWNER, FilesClient, Folders, Workspace, files_client

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    tmp_path.chmod(0o755)
    return Folders(tmp_path / "sessions")


@pytest.fixture
def workspace(folders: Folders) -> Workspace:
    return folders.make(ANN, "s")


@pytest.fixture
async def files(folders: Folders, workspace: Workspace) -> AsyncIterator[FilesClient]:
    async with files_client(folders) as connected:
        yield connected


async def test_a_file_is_written_listed_read_and_deleted(files: FilesClient, workspace: Workspace) -> None:
    written = await files.call("upload_file", path="data/in/a.csv", content="x,y\n1,2\n")
    assert written.data == {"path": "data/in/a.csv", "uri": "workspace://s/data/in/a.csv", "size": 8, "created": True}
    assert workspace.run("print(open('data/in/a.csv').read())") == "x,y\n1,2\n\n"
    listed = await files.get("list_files")
    assert [(one["path"], one["kind"], one["size"]) for one in listed["files"]] == [
        ("data", "folder", 0),
        ("data/in", "folder", 0),
        ("data/in/a.csv", "file", 8),
    ]
    assert listed["files"][2]["uri"] == "workspace://s/data/in/a.csv"
    read = await files.call("download_file", path="/workspace/data/in/a.csv")
    assert (read.data["content"], read.data["media_type"], read.data["encoding"]) == ("x,y\n1,2\n", "text/csv", "text")
    assert "```\nx,y\n1,2\n```" in read.text
    assert read.more == []
    (content,) = await files.client.read_resource("workspace://s/data/in/a.csv")
    assert isinstance(content, TextResourceContents)
    assert (content.text, content.mime_type) == ("x,y\n1,2\n", "text/csv")
    assert (await files.get("delete_file", path="data/in/a.csv"))["count"] == 1
    assert await files.paths() == ["data", "data/in"]
    code, said = await files.refused("download_file", path="data/in/a.csv")
    assert (code, said) == (
        "not_found",
        "There is no 'data/in/a.csv' in the workspace. list_files shows what there is.",
    )


@pytest.mark.case("B116")
async def test_bytes_come_back_as_they_were(files: FilesClient, workspace: Workspace) -> None:
    data = bytes(range(256)) * 100
    workspace.run("open('b.bin', 'wb').write(bytes(range(256)) * 100)")
    read = await files.call("download_file", path="b.bin")
    assert (read.data["encoding"], read.data["size"], "content" in read.data) == ("base64", 25600, False)
    (block,) = read.more
    assert isinstance(block, EmbeddedResource)
    assert isinstance(block.resource, BlobResourceContents)
    assert base64.b64decode(block.resource.blob) == data
    again = await files.get("download_file", path="b.bin", encoding="base64")
    await files.get("upload_file", path="c.bin", content=again["content"], encoding="base64")
    assert (workspace.path / "c.bin").read_bytes() == data
    (content,) = await files.client.read_resource("workspace://s/b.bin")
    assert isinstance(content, BlobResourceContents)
    assert base64.b64decode(content.blob) == data
    code, said = await files.refused("download_file", path="b.bin", encoding="text")
    assert (code, said) == ("invalid_argument", "'b.bin' is no UTF-8 text there. Read it as base64.")


async def test_a_picture_is_shown_as_one_whatever_it_is_called(files: FilesClient, workspace: Workspace) -> None:
    await files.get("upload_file", path="plot", content=base64.b64encode(PNG).decode(), encoding="base64")
    read = await files.call("download_file", path="plot")
    (picture,) = read.more
    assert isinstance(picture, ImageContent)
    assert (picture.mime_type, base64.b64decode(picture.data)) == ("image/png", PNG)
    workspace.run("open('no.png', 'wb').write(b'\\0 no picture')")
    (block,) = (await files.call("download_file", path="no.png")).more
    assert isinstance(block, EmbeddedResource)


@pytest.mark.case("B117")
@pytest.mark.parametrize(
    "name", ['отчёт "1" 空.csv', "a\r\nX: y", " lead.txt", ".hidden", "a|b`c`.md", "100%25.txt", "?#"]
)
async def test_odd_names_are_listed_and_read(files: FilesClient, workspace: Workspace, name: str) -> None:
    workspace.run(f"open({name!r}, 'w').write('content of it')")
    (file,) = (await files.get("list_files"))["files"]
    assert file["path"] == name
    for path in (name, file["uri"]):
        assert (await files.get("download_file", path=path))["content"] == "content of it"
    (content,) = await files.client.read_resource(file["uri"])
    assert isinstance(content, TextResourceContents)
    assert content.text == "content of it"
    table = (await files.call("list_files")).text
    assert len(table.splitlines()) == 3
    await files.get("upload_file", path=name, content="new", overwrite=True)
    assert workspace.run(f"print(open({name!r}).read())") == "new\n"


@pytest.mark.case("B117")
async def test_a_name_that_is_no_text_is_reached_by_its_uri(files: FilesClient, workspace: Workspace) -> None:
    workspace.run("import os; os.mkdir(b'\\xff'); open(b'\\xff/x\\xe9', 'w').write('x')")
    (_folder, file) = (await files.get("list_files"))["files"]
    assert file["path"] == "\\udcff/x\\udce9"
    assert file["uri"] == "workspace://s/%FF/x%E9"
    assert (await files.get("download_file", path=file["uri"]))["content"] == "x"
    assert (await files.get("delete_file", path="workspace://s/%FF", recursive=True))["count"] == 2


@pytest.mark.case("B118")
@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "a/../../x",
        "/work/../etc/passwd",
        "/works",
        "workspace://s/..%2f..%2fx",
        "a\0b",
    ],
)
async def test_a_path_that_leads_out_is_refused_whatever_is_there(files: FilesClient, path: str) -> None:
    said = {
        (await files.refused("download_file", path=path)),
        (await files.refused("upload_file", path=path, content="")),
        (await files.refused("delete_file", path=path)),
        (await files.refused("list_files", path=path)),
    }
    ((code, sentence),) = said
    assert code == "invalid_argument"
    assert "must stay within the session's folder" in sentence


@pytest.mark.case("B118")
async def test_an_escaped_slash_in_a_path_is_a_part_of_a_name(files: FilesClient) -> None:
    assert (await files.refused("download_file", path="sub/..%2f..%2fx"))[0] == "not_found"
    for uri in ("workspace://s/sub/..%2f..%2f..%2fetc/passwd", "workspace://s/%2Fetc/passwd"):
        with pytest.raises(McpError, match="not found"):
            await files.client.read_resource(uri)


async def test_somebody_elses_session_is_answered_as_one_that_is_not_there(
    files: FilesClient, folders: Folders, workspace: Workspace
) -> None:
    workspace.run("open('secret', 'w').write('x')")
    async with files_client(folders, BEN) as other:
        for tool, more in (
            ("download_file", {"path": "secret"}),
            ("list_files", {}),
            ("delete_file", {"path": "secret"}),
        ):
            code, said = await other.refused(tool, "s", **more)
            assert (code, said.replace("'s'", "'unknown'")) == await files.refused(tool, "unknown", **more)
        assert (await other.refused("download_file", "t", path="workspace://s/secret"))[0] == "invalid_argument"
        with pytest.raises(McpError, match="There is no session 's'"):
            await other.client.read_resource("workspace://s/secret")


async def test_a_long_text_is_read_on_from_the_offset_that_is_told(files: FilesClient, workspace: Workspace) -> None:
    workspace.run("open('long.txt', 'w').write('ä€😀' * 20000)")
    whole, offset, steps = "", 0, 0
    while offset is not None:
        piece = await files.get("download_file", path="long.txt", offset=offset)
        assert (piece["size"], piece["encoding"]) == (180_000, "text")
        whole += piece["content"]
        offset = piece.get("next_offset")
        steps += 1
    assert (whole, steps) == ("ä€😀" * 20000, 4)
    piece = await files.get("download_file", path="long.txt", offset=2, length=4)
    assert (piece["content"], piece["next_offset"]) == ("€", 5)
    assert (await files.get("download_file", path="long.txt", offset=1, length=3))["encoding"] == "base64"
    assert (await files.get("download_file", path="long.txt", offset=180_000))["content"] == ""
    code, said = await files.refused("download_file", path="long.txt", offset=180_001)
    assert (code, said) == ("invalid_argument", "offset is 180001; 'long.txt' has 180000 bytes.")
    assert "must be 0 or more" in (await files.refused("download_file", path="long.txt", offset=-1))[1]


async def test_text_with_binary_behind_it_is_marked_where_it_begins(files: FilesClient, workspace: Workspace) -> None:
    workspace.run("open('mixed', 'wb').write(b'text\\n' * 20000 + b'\\xff\\xfe')")
    first = await files.get("download_file", path="mixed")
    assert (first["encoding"], first["next_offset"]) == ("text", 60_000)
    rest = await files.get("download_file", path="mixed", offset=60_000)
    assert rest["encoding"] == "base64"


async def test_too_large_is_said_with_what_to_do(folders: Folders, workspace: Workspace) -> None:
    async with files_client(folders, limits=FileLimits(upload=1000, download=2000)) as files:
        code, said = await files.refused("upload_file", path="a", content="x" * 1001)
        assert (code, "1001 bytes" in said, "append=true" in said) == ("invalid_argument", True, True)
        await files.get("upload_file", path="a", content="x" * 1000)
        assert (await files.get("upload_file", path="a", content="y" * 1000, append=True))["size"] == 2000
        assert (await files.get("upload_file", path="b", content="z", append=True))["created"]
        await files.get("upload_file", path="a", content="z", append=True)
        code, said = await files.refused("download_file", path="a", length=2001)
        assert (code, "between 1 and 2000" in said) == ("invalid_argument", True)
        with pytest.raises(McpError, match="2001 bytes; one call may read 2000"):
            await files.client.read_resource("workspace://s/a")
        piece = await files.get("download_file", path="a", length=2000, encoding="base64")
        assert (base64.b64decode(piece["content"]), piece["next_offset"]) == (b"x" * 1000 + b"y" * 1000, 2000)
    assert workspace.run("print(open('a').read() == 'x' * 1000 + 'y' * 1000 + 'z')") == "True\n"


async def test_nothing_is_replaced_that_was_not_to_be(files: FilesClient, workspace: Workspace) -> None:
    workspace.run("import os; open('a', 'w').write('old'); os.chmod('a', 0o750); os.mkdir('d'); os.symlink('a', 'l')")
    code, said = await files.refused("upload_file", path="a", content="new")
    assert (code, said) == ("invalid_argument", "'a' exists already. overwrite=true replaces it.")
    assert "is a folder" in (await files.refused("upload_file", path="d", content="new", overwrite=True))[1]
    assert "exists already" in (await files.refused("upload_file", path="l", content="new"))[1]
    assert not (await files.get("upload_file", path="a", content="new", overwrite=True))["created"]
    await files.get("upload_file", path="l", content="no link now", overwrite=True)
    assert workspace.run("import os; print(open('a').read(), oct(os.stat('a').st_mode), os.path.islink('l'))") == (
        "new 0o100750 False\n"
    )
    assert workspace.run("import os; print(sorted(os.listdir()))") == "['a', 'd', 'l']\n"
    for path in ("", "/workspace", "."):
        assert "itself" in (await files.refused("upload_file", path=path, content="", overwrite=True))[1]
        assert "itself" in (await files.refused("delete_file", path=path, recursive=True))[1]
    assert "lies in none" in (await files.refused("upload_file", path="a/b", content=""))[1]
    assert "no base64" in (await files.refused("upload_file", path="x", content="%%%", encoding="base64"))[1]


async def test_what_is_written_belongs_to_the_session(files: FilesClient, workspace: Workspace) -> None:
    await files.get("upload_file", path="new/folder/a.txt", content="a")
    workspace.run("open('new/folder/a.txt', 'a').write('b'); open('new/folder/b.txt', 'w').write('c')")
    assert (await files.get("download_file", path="new/folder/a.txt"))["content"] == "ab"
    owner = OWNER if os.geteuid() == 0 else os.geteuid()
    for name in ("new", "new/folder", "new/folder/a.txt"):
        assert (workspace.path / name).stat().st_uid == owner


async def test_a_workspace_without_room_refuses_what_does_not_fit(tmp_path: Path) -> None:
    folders = Folders(tmp_path, room=10)
    folders.make(ANN, "s")
    async with files_client(folders) as files:
        assert (await files.refused("upload_file", path="a", content="x" * 11))[0] == "disk_full"
        await files.get("upload_file", path="a", content="x" * 10)


async def test_folders_are_deleted_only_when_that_is_said(files: FilesClient, workspace: Workspace) -> None:
    workspace.run("import os; os.makedirs('d/e'); open('d/e/f', 'w'); open('d/g', 'w'); os.makedirs('empty')")
    for path in ("d", "empty"):
        code, said = await files.refused("delete_file", path=path)
        assert (code, "recursive=true" in said) == ("invalid_argument", True)
    assert (await files.get("delete_file", path="d", recursive=True))["count"] == 4
    assert await files.paths() == ["empty"]


async def test_a_pattern_finds_names_or_paths(files: FilesClient, workspace: Workspace) -> None:
    workspace.run(
        "import os\nfor p in ('a.csv', 'b.txt', 'd/c.csv', 'd/e/f.csv', 'd/e/g.txt'):\n"
        "  os.makedirs(os.path.dirname(p) or '.', exist_ok=True); open(p, 'w')"
    )
    assert await files.paths(pattern="*.csv") == ["a.csv", "d/c.csv", "d/e/f.csv"]
    assert await files.paths(pattern="*.csv", recursive=False) == ["a.csv"]
    assert await files.paths(pattern="d/**/*.csv") == ["d/c.csv", "d/e/f.csv"]
    assert await files.paths(pattern="**/e/*") == ["d/e/f.csv", "d/e/g.txt"]
    assert await files.paths(pattern="d/*.csv") == ["d/c.csv"]
    assert await files.paths(path="d", pattern="e/*.csv") == ["d/e/f.csv"]
    assert await files.paths(path="d/e") == ["d/e/f.csv", "d/e/g.txt"]
    assert await files.paths(recursive=False) == ["a.csv", "b.txt", "d"]
    assert await files.paths(pattern="**/" * 60 + "*.none") == []
    assert "at most 200" in (await files.refused("list_files", pattern="*" * 201))[1]


async def test_a_file_of_many_megabytes_is_read_by_ranges(files: FilesClient, workspace: Workspace) -> None:
    workspace.run("open('big', 'wb').write(b'\\0' + b'x' * (9 * 2 ** 20))")
    first = await files.get("download_file", path="big", encoding="base64")
    assert (first["next_offset"], first["size"]) == (8 * MEGABYTE, 9 * MEGABYTE + 1)
    rest = await files.get("download_file", path="big", offset=8 * MEGABYTE, encoding="base64")
    assert (len(base64.b64decode(rest["content"])), "next_offset" in rest) == (MEGABYTE + 1, False)
