"""The real server and the real command line, from outside. A package, so that one server can serve all its files."""
