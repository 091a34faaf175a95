"""The composition root: settings in, the parts put together."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyexec_idp.domain.secrets import Clock, wall_clock
from pyexec_idp.domain.values import Client
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.directory import Directory
from pyexec_idp.grants.minting import Mint
from pyexec_idp.grants.registration import Registration
from pyexec_idp.grants.scopes import Register
from pyexec_idp.http.counting import Metrics
from pyexec_idp.keys.pepper import Pepper
from pyexec_idp.keys.ring import KeyRing
from pyexec_idp.keys.signing import Signer
from pyexec_idp.settings import Settings
from pyexec_idp.stores.attempts import AttemptStore, Audit
from pyexec_idp.stores.clients import ClientStore, ResourceStore
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.devices import DeviceStore
from pyexec_idp.stores.grants import GrantStore
from pyexec_idp.stores.users import SignInStore, UserStore
from pyexec_idp.users.passwords import Passwords
from pyexec_idp.users.people import People
from pyexec_idp.users.sessions import Sessions


@dataclass(kw_only=True)
class Parts:
    """Everything there is, made when it is first asked for."""

    settings: Settings
    now: Clock = wall_clock
    find_document: Callable[[str], Client | None] | None = None

    @cached_property
    def database(self) -> Database:
        """The database."""
        return Database(self.settings.database_url)

    @cached_property
    def keys_folder(self) -> Path:
        """Where the keys lie."""
        return self.settings.home / "keys"

    @cached_property
    def ring(self) -> KeyRing:
        """The signing keys."""
        lifetimes = self.settings.lifetimes
        return KeyRing(
            self.keys_folder,
            seen_within=self.settings.metadata_seen_within,
            valid_for=max(lifetimes.access_token, lifetimes.id_token) + 60.0,
            now=self.now,
        )

    @cached_property
    def audit(self) -> Audit:
        """What happened."""
        return Audit(self.database, self.now)

    @cached_property
    def metrics(self) -> Metrics:
        """What is counted, for Prometheus."""
        return Metrics(self.audit.counts)

    @cached_property
    def attempts(self) -> AttemptStore:
        """What was tried lately."""
        return AttemptStore(self.database)

    @cached_property
    def clients(self) -> ClientStore:
        """The clients."""
        return ClientStore(self.database)

    @cached_property
    def resources(self) -> ResourceStore:
        """The resources."""
        return ResourceStore(self.database)

    @cached_property
    def grants(self) -> GrantStore:
        """What people allowed."""
        return GrantStore(self.database)

    @cached_property
    def people(self) -> People:
        """The users."""
        settings = self.settings
        return People(
            store=UserStore(self.database),
            sign_ins=SignInStore(self.database),
            grants=self.grants,
            attempts=self.attempts,
            audit=self.audit,
            passwords=Passwords(memory_kib=settings.hash_memory_kib, passes=settings.hash_passes),
            bounds=settings.bounds,
            now=self.now,
        )

    @cached_property
    def sessions(self) -> Sessions:
        """Where they are signed in."""
        return Sessions(SignInStore(self.database), self.audit, self.settings.lifetimes, self.now)

    @cached_property
    def registration(self) -> Registration | None:
        """How clients register themselves, where they may."""
        if not self.settings.registration:
            return None
        return Registration(
            store=self.clients,
            attempts=self.attempts,
            audit=self.audit,
            bounds=self.settings.bounds,
            redirect_schemes=self.settings.redirect_schemes,
            now=self.now,
        )

    @cached_property
    def context(self) -> Context:
        """What the grants work with."""
        settings = self.settings
        signer = Signer(self.ring, settings.issuer, self.now)
        return Context(
            issuer=settings.issuer,
            clients=Directory(self.clients, self.find_document, self.now),
            register=Register(self.resources, settings.issuer),
            grants=self.grants,
            devices=DeviceStore(self.database),
            people=self.people,
            mint=Mint(signer, self.grants, settings.lifetimes, self.now),
            signer=signer,
            pepper=Pepper.ensure(self.keys_folder / "pepper"),
            audit=self.audit,
            lifetimes=settings.lifetimes,
            now=self.now,
        )

    def close(self) -> None:
        """Close what is open."""
        self.database.close()
