"""Identity provider for pyexec: the name is reserved, endpoints arrive in a later release."""

from importlib.metadata import version

__version__ = version("pyexec-idp")
