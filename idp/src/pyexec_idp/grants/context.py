"""What the grants work with."""

from dataclasses import dataclass

from pyexec_idp.domain.secrets import Clock
from pyexec_idp.domain.values import Lifetimes
from pyexec_idp.grants.directory import Directory
from pyexec_idp.grants.minting import Mint
from pyexec_idp.grants.scopes import Register
from pyexec_idp.keys.pepper import Pepper
from pyexec_idp.keys.signing import Signer
from pyexec_idp.stores.attempts import Audit
from pyexec_idp.stores.devices import DeviceStore
from pyexec_idp.stores.grants import GrantStore
from pyexec_idp.users.people import People


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts, put together by the composition root."""

    issuer: str
    clients: Directory
    register: Register
    grants: GrantStore
    devices: DeviceStore
    people: People
    mint: Mint
    signer: Signer
    pepper: Pepper
    audit: Audit
    lifetimes: Lifetimes
    now: Clock
