"""From which address a request came.

What a proxy says of it in `X-Forwarded-For` has been put in already, where the proxy is one of those that the operator
names (see `serving.config_for`). It may still be anything that somebody wrote there.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.requests import HTTPConnection

UNKNOWN = ""
_ONE_PLACE = 64
"""So many bits of an IPv6 address stand for one place, which has all addresses behind them."""


def address_of(connection: HTTPConnection) -> str:
    """Return the address a request came from; `UNKNOWN` where what is said is none."""
    found = _read(connection)
    return UNKNOWN if found is None else str(found)


def place_of(connection: HTTPConnection) -> str:
    """Return what requests from one place have in common, to count them by."""
    found = _read(connection)
    if isinstance(found, IPv6Address):
        return str(IPv6Address(int(found) >> _ONE_PLACE << _ONE_PLACE))
    return UNKNOWN if found is None else str(found)


def _read(connection: HTTPConnection) -> IPv4Address | IPv6Address | None:
    host = connection.client.host if connection.client is not None else ""
    try:
        # A zone says on which link, to the machine that has it, and may be any text.
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found
