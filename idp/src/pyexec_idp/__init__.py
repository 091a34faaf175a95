"""Identity provider: OAuth 2.1 and OpenID Connect, for MCP servers and whoever else takes its tokens."""

from importlib.metadata import version

__version__ = version("pyexec-idp")
