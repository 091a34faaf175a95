"""Clients that nobody here wrote sign in and call tools: mcp-remote, and the command line of the MCP Inspector."""

import json
from functools import partial
from pathlib import Path

import pytest
from anyio.to_thread import run_sync
from fastmcp.utilities.http import find_available_port

from tests.idp.javascript import PACKAGES, needs_packages, run, run_and_sign_in
from tests.oauth.conftest import Guarded
from tests.oauth.site import Site, serving

pytestmark = [needs_packages, pytest.mark.exhaustive]

INSPECTOR = PACKAGES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def inspector_environ(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "MCP_CATALOG_PATH": str(folder / "catalogue.json"),
        "MCP_AUTO_OPEN_ENABLED": "true",
        "MCP_INSPECTOR_SECRET_STORE": "memory",
        "MCP_OAUTH_CALLBACK_URL": f"http://127.0.0.1:{find_available_port()}/oauth/callback",
    }


def calling(site: Site, era: str, tool: str, **arguments: object) -> list[str | Path]:
    return [
        INSPECTOR,
        *("--cli", "--protocol-era", era, "--server-url", site.url, "--transport", "http", "--method", "tools/call"),
        *("--tool-name", tool, "--tool-args-json", json.dumps(arguments), "--format", "json"),
    ]


async def test_mcp_remote_signs_in_and_lists_the_tools(guarded: Guarded, tmp_path: Path) -> None:
    words = [PACKAGES / "mcp-remote" / "dist" / "client.js", guarded.site.url, str(find_available_port())]
    sign_in = partial(
        run_and_sign_in,
        guarded.idp.issuer,
        *words,
        "--allow-http",
        until='"name": "run_script_in_dir"',
        HOME=str(tmp_path),
        MCP_REMOTE_CONFIG_DIR=str(tmp_path),
    )
    assert "Connected successfully!" in await run_sync(sign_in)


@ERAS
async def test_the_inspector_signs_in_and_runs_code(guarded: Guarded, tmp_path: Path, era: str) -> None:
    given = {"directory": str(guarded.site.work), "script_content": "print('ran')", "use_uv": False}
    words = calling(guarded.site, era, "run_script_in_dir", **given, wait_seconds=100)
    sign_in = partial(run_and_sign_in, guarded.idp.issuer, *words, **inspector_environ(tmp_path))
    printed = await run_sync(sign_in)
    assert json.loads(printed.splitlines()[-1])["result"]["structuredContent"]["stdout"] == "ran\n"


@ERAS
async def test_the_inspector_finds_nothing_wrong_with_the_tools(module_home: Path, tmp_path: Path, era: str) -> None:
    async with serving(module_home) as site:
        token = site.key.token(site.url)
        words = [
            INSPECTOR,
            *("--cli", "--protocol-era", era, "--server-url", site.url, "--transport", "http", "-q"),
            *("--header", f"Authorization: Bearer {token}", "--method", "tools/list", "--strict", "--format", "json"),
        ]
        printed = await run_sync(partial(run, *words, **inspector_environ(tmp_path)))
    assert "run_script_in_dir" in printed
