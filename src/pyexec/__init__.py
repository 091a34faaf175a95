"""pyexec: the way Python gets run for AI agents and for the people who work with them."""
