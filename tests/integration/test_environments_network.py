"""A network that is away, slow to answer, behind a proxy or signed by somebody's own authority."""

import json
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.integration.conftest import MakeUvEngine
from tests.integration.environments import SHOW, UvEngine, package_index

pytestmark = pytest.mark.needs_uv

DEAD = "http://127.0.0.1:9"
AWAY = {"HTTPS_PROXY": DEAD, "https_proxy": DEAD, "NO_PROXY": "", "no_proxy": ""}
AT_ONCE = {"UV_HTTP_RETRIES": "0"}


def age(engine: UvEngine, hours: float) -> None:
    """Have all resolutions be made so many hours earlier."""
    for path in (engine.home / "environments" / "requests").glob("*.json"):
        values = json.loads(path.read_bytes())
        path.write_text(json.dumps({**values, "created_at": values["created_at"] - hours * 3600}))


@pytest.mark.case("B036")
async def test_a_dead_index_is_one_sentence(uv_engine: UvEngine) -> None:
    reason = await uv_engine.failure(dependencies=["attrs"], env_vars=AWAY)

    assert " cannot be reached: " in reason
    assert "\n" not in reason


@pytest.mark.case("B036")
async def test_what_is_in_uvs_cache_is_enough_without_a_network_and_the_result_says_so(uv_engine: UvEngine) -> None:
    request = {"dependencies": ["iniconfig==2.0.0"], "args": ["iniconfig"]}
    await uv_engine.run(SHOW, **request)

    execution = await uv_engine.run(
        SHOW, **{**request, "dependencies": ["iniconfig==2.*,<2.0.1"]}, env_vars=AWAY | AT_ONCE
    )

    assert await uv_engine.stdout(execution) == "iniconfig=2.0.0\n"
    assert uv_engine.prepared(await uv_engine.run(SHOW, **request, env_vars=AWAY)) == []  # Nobody is asked for this.
    (note,) = (await uv_engine.answer(execution)).notes
    assert note == "The package index could not be reached; the packages are those that uv has in its cache."


@pytest.mark.case("B036")
async def test_what_was_resolved_once_is_enough_without_network_and_cache(uv_engine: UvEngine, tmp_path: Path) -> None:
    request = {"dependencies": ["iniconfig==2.0.0"], "args": ["iniconfig"]}
    first = await uv_engine.run(SHOW, **request)
    age(uv_engine, 30)
    empty = {"UV_CACHE_DIR": str(tmp_path / "cache")}

    execution = await uv_engine.run(SHOW, **request, env_vars=AWAY | AT_ONCE | empty)

    answer = await uv_engine.answer(execution)
    assert await uv_engine.stdout(execution) == "iniconfig=2.0.0\n"
    assert answer.digest == (await uv_engine.answer(first)).digest
    assert answer.notes == ("The package index could not be reached; the packages are those of 30 hours ago.",)


@pytest.mark.case("B036")
async def test_what_is_not_cached_while_uv_is_offline_names_package_and_index(uv_engine: UvEngine) -> None:
    reason = await uv_engine.failure(dependencies=["markupsafe"], env_vars={"UV_OFFLINE": "1"})

    assert "the package index" in reason
    assert "markupsafe was not found in the cache" in reason


@pytest.mark.exhaustive
async def test_a_resolution_counts_for_as_long_as_is_set(make_uv_engine: MakeUvEngine) -> None:
    engine, impatient = make_uv_engine(), make_uv_engine(fresh_hours=0)
    request = {"dependencies": ["zzlib"], "args": ["zzlib"]}
    with package_index() as index:
        index.add("zzlib", "1.0")
        given = {**request, "index_url": f"{index.url}/simple"}
        # uv itself asks an index again after ten minutes only, unless that says otherwise.
        fresh = {"UV_CACHE_DIR": str(engine.home.parent / "cache")}
        assert await engine.printed_by(SHOW, **given, env_vars=fresh) == "zzlib=1.0"
        index.add("zzlib", "2.0")
        subprocess.run(["rm", "-r", fresh["UV_CACHE_DIR"]], check=True)

        assert await engine.printed_by(SHOW, **given, env_vars=fresh) == "zzlib=1.0"
        assert await impatient.printed_by(SHOW, **given, env_vars=fresh) == "zzlib=2.0"
    assert len(engine.complete()) == 2


async def test_a_proxy_is_used_as_uv_takes_it(uv_engine: UvEngine) -> None:
    with package_index() as index:
        index.add("zzlib", "1.0")
        env_vars = {"HTTP_PROXY": index.url, "http_proxy": index.url, "NO_PROXY": "", "no_proxy": ""}
        request = {"dependencies": ["zzlib"], "index_url": "http://index.invalid/simple", "env_vars": env_vars}

        assert await uv_engine.printed_by(SHOW, args=["zzlib"], **request) == "zzlib=1.0"

    assert index.asked[0] == "http://index.invalid/simple/zzlib/"


@pytest.mark.exhaustive
async def test_an_authority_of_ones_own_is_trusted_as_uv_takes_it(uv_engine: UvEngine, tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    words += ("-days", "2", "-subj", "/CN=localhost")
    extensions = ("-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE")
    files = ("-keyout", str(key), "-out", str(certificate))
    subprocess.run(["openssl", *words, *extensions, *files], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with package_index(tls=tls) as index:
        index.add("zzlib", "1.0")
        request = {"dependencies": ["zzlib"], "index_url": f"https://localhost:{index.port}/simple"}

        reason = await uv_engine.failure(**request, env_vars=AT_ONCE)
        trusted = {"SSL_CERT_FILE": str(certificate)}
        assert await uv_engine.printed_by(SHOW, args=["zzlib"], **request, env_vars=trusted) == "zzlib=1.0"

    assert reason.startswith("localhost cannot be reached: ")
