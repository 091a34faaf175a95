"""Re-exports for people whose configuration names the old package; the product itself is `pyexec`."""

from pyexec.cli.main import main, serve_main

__all__ = ["main", "serve_main"]
