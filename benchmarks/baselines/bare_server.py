"""What a person would write instead of the product, as far as `initialize` goes: a FastMCP server with one tool."""

from fastmcp import FastMCP

server = FastMCP("bare")


@server.tool
def run_python(code: str) -> str:
    """Run Python code."""
    return code


if __name__ == "__main__":
    server.run(show_banner=False)
