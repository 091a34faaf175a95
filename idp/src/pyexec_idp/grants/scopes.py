"""What a client may ask for: scopes, and the resource they are for (RFC 8707)."""

from collections.abc import Mapping
from dataclasses import dataclass

from authlib.oauth2.rfc6749 import InvalidScopeError

from pyexec_idp.domain.urls import canonical_resource
from pyexec_idp.domain.values import OPENID_SCOPES, Client, Origin, Resource
from pyexec_idp.grants.wire import InvalidTargetError
from pyexec_idp.stores.clients import ResourceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for, made complete. `resource` is the audience: the issuer's own where it is about people only."""

    scopes: tuple[str, ...]
    resource: str


class Register:
    """The register of resources, and the rules for what is asked of them."""

    def __init__(self, store: ResourceStore, issuer: str) -> None:
        self._store = store
        self._issuer = issuer

    def supported(self) -> list[str]:
        """Return every scope there is."""
        own = {scope for one in self._store.all() for scope in one.scopes}
        return [*OPENID_SCOPES, *sorted(own)]

    def named(self, url: str) -> Resource | None:
        """Return the resource of a URL."""
        return next((one for one in self._store.all() if one.url == url), None)

    def words(self, asked: Asked) -> dict[str, str]:
        """Return the scopes with words for people."""
        resource = self.named(asked.resource)
        known = {**OPENID_SCOPES, **({} if resource is None else resource.scopes)}
        return {scope: known.get(scope, scope) for scope in asked.scopes}

    def complete(self, client: Client, scope: str | None, resources: list[str]) -> Asked:
        """Check what is asked for, and fill in what is not said.

        Without a scope everything of the resource is meant that the client may ask for; without a resource it is the
        default one, but the issuer itself where nothing but scopes about the person is asked for.

        Raises:
            InvalidScopeError: A scope is unknown there, or not for this client.
            InvalidTargetError: The resource is not in the register, or there are several.
        """
        if len(resources) > 1:
            raise InvalidTargetError("Ask for one resource at a time.")
        wanted = tuple(dict.fromkeys((scope or "").split()))
        target = self._target(resources[0] if resources else None, wanted)
        known: Mapping[str, str] = {} if target is None else target.scopes
        every = {*OPENID_SCOPES, *known}
        own = every.intersection(client.scopes) if client.scopes else every
        # What a client wrote into its own registration is what it needed that day, and binds nobody: it could register
        # again. A server that asks it for more later (a step-up) is answered by a person, who is asked each time.
        allowed = own if client.origin is Origin.OPERATOR else every
        if not wanted:
            wanted = tuple(one for one in known if one in own)
        if not wanted or not allowed.issuperset(wanted):
            raise InvalidScopeError
        return Asked(scopes=wanted, resource=self._issuer if target is None else target.url)

    def same(self, allowed: str, resources: list[str]) -> None:
        """Check that a resource named again is the one that was allowed.

        Raises:
            InvalidTargetError: It is another.
        """
        if any(self._look_up(one)[0] != allowed for one in resources):
            raise InvalidTargetError("The resource is not the one that was allowed.")

    def _target(self, resource: str | None, wanted: tuple[str, ...]) -> Resource | None:
        if resource is None:
            if wanted and OPENID_SCOPES.keys() >= set(wanted):
                return None
            every = self._store.all()
            return every[0] if len(every) == 1 else next((one for one in every if one.is_default), None)
        url, found = self._look_up(resource)
        if url == self._issuer:
            return None
        if found is None:
            raise InvalidTargetError("The resource is not registered here.")
        return found

    def _look_up(self, url: str) -> tuple[str | None, Resource | None]:
        """Return what a URL is called here, None where it is none; and the resource, where there is one."""
        called = canonical_resource(url)
        if called is None:
            return None, None
        every = {one.url: one for one in self._store.all()}
        # A final slash is the most common slip of all, and names no other server.
        for name in (called, called.removesuffix("/")):
            if name in every:
                return name, every[name]
        return called, None
