import pytest

from pyexec.environments.failures import explain

CONFLICT = """\
error: No solution found when resolving dependencies
  cause: Because you require pluggy==1.4.0 and pluggy==1.5.0, we can conclude that your requirements are unsatisfiable.
"""
MISSING = """\
error: No solution found when resolving dependencies
  cause: Because no-such-pkg-zz9 was not found in the package registry and you require no-such-pkg-zz9, we can \
conclude that your requirements are unsatisfiable.
"""
UNREACHABLE = """\
error: Request failed after 2 retries in 3.3s
  cause: Failed to fetch: http://user:SECRET@no-such-host.invalid/simple/attrs/
  cause: error sending request for url (http://user:SECRET@no-such-host.invalid/simple/attrs/)
  cause: client error (Connect)
  cause: dns error
  cause: failed to lookup address information: Name or service not known
"""
OFFLINE = """\
error: No solution found when resolving dependencies
  cause: Because attrs was not found in the cache and you require attrs, we can conclude that your requirements are \
unsatisfiable.

hint: Packages were unavailable because the network was disabled. When the network is disabled, registry packages \
may only be read from the cache.
"""
NO_PYTHON = (
    "error: No interpreter found for Python >=3.99 in virtual environments, managed installations, or search path\n"
)


@pytest.mark.case("B035")
@pytest.mark.parametrize(
    ("stderr", "named"), [(CONFLICT, "pluggy==1.4.0 and pluggy==1.5.0"), (MISSING, "no-such-pkg-zz9")]
)
def test_requirements_that_cannot_be_met_are_named(stderr: str, named: str) -> None:
    failure = explain(stderr, {})
    assert failure.kind == "dependency_resolution"
    assert failure.message.startswith("The requirements cannot be met: Because ")
    assert named in failure.message


@pytest.mark.case("B036")
def test_a_network_that_is_away_is_one_sentence_with_the_host() -> None:
    failure = explain(UNREACHABLE, {})
    assert (failure.kind, failure.message) == (
        "network",
        "no-such-host.invalid cannot be reached: failed to lookup address information: Name or service not known.",
    )
    assert "SECRET" not in failure.detail


@pytest.mark.case("B036")
@pytest.mark.parametrize(
    ("environ", "host"),
    [
        ({}, "the package index"),
        ({"UV_DEFAULT_INDEX": "https://index.example/simple"}, "index.example"),
        ({"UV_DEFAULT_INDEX": "main=https://u:p@index.example/simple"}, "index.example"),
        ({"UV_INDEX_URL": "/opt/wheels"}, "/opt/wheels"),
    ],
)
def test_being_offline_names_the_index_that_was_not_asked(environ: dict[str, str], host: str) -> None:
    failure = explain(OFFLINE, environ)
    assert failure.kind == "network"
    assert failure.message.startswith(
        f"uv is offline (it may not ask {host}) and its cache does not suffice: Because attrs was not found"
    )


def test_an_index_that_refuses_says_how_it_answered() -> None:
    stderr = (
        "error: Failed to fetch: `https://index.example/simple/attrs/`\n"
        "  cause: HTTP status client error (401 Unauthorized) for url (https://index.example/simple/attrs/)\n"
    )
    assert explain(stderr, {}).message == "The package index index.example answered 401 Unauthorized."


def test_a_missing_interpreter_is_said_as_uv_says_it() -> None:
    failure = explain(NO_PYTHON, {})
    assert failure.kind == "interpreter"
    assert failure.message.startswith("No interpreter found for Python >=3.99 in ")


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        (
            "\x1b[31merror\x1b[0m: Failed to parse: uv.toml\n",
            "The environment could not be made: Failed to parse: uv.toml.",
        ),
        ("panicked at x\nmore\n", "The environment could not be made: panicked at x."),
        ("", "The environment could not be made: uv said nothing."),
    ],
)
def test_anything_else_is_said_in_uvs_own_first_words(stderr: str, message: str) -> None:
    assert explain(stderr, {}).message == message


@pytest.mark.case("B035")
def test_a_conflict_over_several_packages_is_told_whole() -> None:
    stderr = (
        "error: No solution found when resolving dependencies\n"
        "  cause: Because pytest==8.0.0 depends on pluggy>=1.3.0,<2.0 and you require pytest==8.0.0, we can conclude "
        "that you require pluggy>=1.3.0,<2.0.\n"
        "         And because you require pluggy==1.0.0, we can conclude that your requirements are unsatisfiable.\n"
    )
    message = explain(stderr, {}).message
    assert message.endswith(
        "you require pluggy>=1.3.0,<2.0. And because you require pluggy==1.0.0, we can conclude that your "
        "requirements are unsatisfiable."
    )


def test_a_build_that_fails_names_the_package_and_what_the_build_printed_is_no_word_of_uvs() -> None:
    stderr = (
        "error: Failed to build `bad @ file:///srv/bad`\n"
        "  cause: The build backend returned an error\n"
        "  cause: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)\n\n"
        "         [stderr]\n         error: Failed to fetch: https://x.org/\n\n"
        "hint: Build failures usually indicate a problem with the package or the build environment\n"
    )
    failure = explain(stderr, {})
    assert (failure.kind, failure.message) == (
        "build",
        "Failed to build `bad @ file:///srv/bad`: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1).",
    )


def test_the_words_of_earlier_versions_of_uv_are_understood() -> None:
    stderr = (
        "  \N{MULTIPLICATION SIGN} No solution found when resolving dependencies:\n"
        "  ╰─▶ Because you require a==1 and a==2, no.\n"
    )
    assert explain(stderr, {}).message == "The requirements cannot be met: Because you require a==1 and a==2, no."


@pytest.mark.parametrize(
    "stderr",
    [
        "error: Failed to write to `/x/y`\n  cause: No space left on device (os error 28)\n",
        "error: Failed to fetch: https://x.org/a.whl\n  cause: failed to write: Disk quota exceeded (os error 122)\n",
    ],
)
def test_a_full_disk_is_called_so_whatever_uv_was_about_to_do(stderr: str) -> None:
    failure = explain(stderr, {})
    assert (failure.kind, failure.message) == (
        "disk",
        "The disk is full, so the environment could not be made; free some space and try again.",
    )
    assert failure.detail == stderr.strip()


@pytest.mark.case("B037")
def test_credentials_are_in_no_part_of_a_failure() -> None:
    stderr = (
        "error: Failed to fetch: `https://u:SEC@RET@index.example/simple/attrs/`\n"
        "  cause: HTTP status client error (403 Forbidden) for url (https://SECRET@index.example/simple/attrs/)\n"
    )
    failure = explain(stderr, {"UV_DEFAULT_INDEX": "https://u:SECRET@index.example/simple"})
    assert failure.message == "The package index index.example answered 403 Forbidden."
    assert "SEC" not in repr(failure)
    assert "RET" not in repr(failure)
