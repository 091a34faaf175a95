"""Files of sessions as markdown."""

from pyexec.mcp import results_files as results
from pyexec.mcp.rendering import fenced

ROWS = 200


def render_listing(result: results.FileListing) -> str:
    """Return `list_files` as markdown."""
    if not result.files:
        return "There is nothing of the kind." if result.complete else "Nothing was found in the time there is."
    rows = ["| path | size | modified |", "|---|---|---|"]
    rows += [f"| {_path(one)} | {_size(one)} | {one.modified or ''} |" for one in result.files[:ROWS]]
    parts = ["\n".join(rows)]
    if result.total > ROWS:
        parts.append(f"{result.total - ROWS} more are left out; a pattern or a path narrows it down.")
    if not result.complete:
        parts.append("There are more than were looked at: too many, too deep, or not to be opened.")
    return "\n\n".join(parts)


def render_content(result: results.FileContent) -> str:
    """Return `download_file` as markdown."""
    parts = [f"{_name(result.path)}: {result.size} bytes, {result.media_type}"]
    if result.encoding == "text":
        parts.append(fenced(result.content or ""))
    if result.offset or result.next_offset is not None:
        end = result.size if result.next_offset is None else result.next_offset
        rest = "" if result.next_offset is None else f" `offset={result.next_offset}` reads on."
        parts.append(f"Bytes {result.offset} to {end} of {result.size}.{rest}")
    return "\n\n".join(parts)


def render_written(result: results.FileWritten) -> str:
    """Return `upload_file` as markdown."""
    return f"{'Created' if result.created else 'Changed'} {_name(result.path)}: {result.size} bytes, `{result.uri}`."


def render_deleted(result: results.FileDeleted) -> str:
    """Return `delete_file` as markdown."""
    more = f" with all in it, {result.count} entries" if result.count > 1 else ""
    return f"Deleted {_name(result.path)}{more}."


def _path(one: results.FileRow) -> str:
    """Return a name for a table; one that no reader could copy from there, by its URI."""
    if one.uri is not None and (not one.path.isprintable() or one.path != one.path.strip() or "\\" in one.path):
        return f"`{one.uri}`"
    return _name(one.path + "/" * (one.kind == "folder")).replace("|", "\\|")


def _size(one: results.FileRow) -> str:
    return str(one.size) if one.kind == "file" else one.kind


def _name(path: str) -> str:
    shown = path if path.isprintable() else ascii(path)[1:-1]
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"
