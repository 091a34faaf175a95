"""Identity provider: OAuth 2.1 and OpenID Connect, for MCP servers and whoever else takes its tokens."""
