"""Start the server, as `python -m python_mcp_server` always did."""

from pyexec.cli.main import serve_main

if __name__ == "__main__":
    serve_main()
