"""How much there may be of something, and passwords that came from elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
from pwdlib.hashers.argon2 import Argon2Hasher

from pyexec_idp.stores.users import UserStore
from tests.idp.site import ISSUER, PASSWORD, Site


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "idp", PYEXEC_IDP_FAILURES_PER_ADDRESS="3", PYEXEC_IDP_DYNAMIC_CLIENTS="2")
    yield made
    made.close()


def test_guessing_is_slowed_down_for_an_address_whatever_the_names(narrow: Site) -> None:
    site = narrow
    site.parts.people.add("grace", PASSWORD)
    browser = site.browser()
    browser.get(f"{ISSUER}/account")
    assert [browser.sign_in(f"nobody-{n}").status_code for n in range(4)] == [401, 401, 401, 429]
    assert browser.sign_in("grace").status_code == 429
    site.clock.advance(901)
    assert browser.sign_in("grace").status_code == 303


def test_clients_that_register_themselves_are_only_so_many(narrow: Site) -> None:
    assert [narrow.register().status_code for _client in range(3)] == [201, 201, 429]
    assert "registrations_full" in narrow.audited()
    narrow.own_client()  # The operator's own are not counted.


@pytest.mark.parametrize(
    "kept",
    [
        bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode(),
        Argon2Hasher(time_cost=2, memory_cost=16, parallelism=2).hash(PASSWORD),
    ],
    ids=["bcrypt", "argon2id with other parameters"],
)
def test_a_password_hash_from_elsewhere_is_taken_and_made_anew_at_the_sign_in(site: Site, kept: str) -> None:
    site.parts.people.add("grace", password_hash=kept)

    def now_kept() -> str | None:
        found = UserStore(site.parts.database).named("grace")
        return None if found is None else found[1]

    browser = site.browser()
    browser.get(f"{ISSUER}/account")
    assert browser.sign_in("grace", "another password").status_code == 401
    assert now_kept() == kept
    assert browser.sign_in("grace").status_code == 303
    assert (now_kept() or "").startswith("$argon2id$v=19$m=8,t=1,p=1$")
    browser.get(f"{ISSUER}/account")
    assert browser.page is not None
    browser.submit(0)
    browser.get(f"{ISSUER}/account")
    assert browser.sign_in("grace").status_code == 303
