"""Text that is short enough, whatever it was."""


def clip(text: str, most: int) -> str:
    """Return `text`, or its head and tail with a line between that says how much is missing."""
    if len(text) <= most:
        return text
    half = max(0, most) // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[len(text) - half :]}"


def describe(error: BaseException, most: int = 300) -> str:
    """Return an exception in one line, even one that cannot describe itself."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception as failure:  # noqa: BLE001 - the program's own code
        said = f"<its text cannot be had: {type(failure).__name__}>"
    line = f"{name}: {said}" if said else name
    return line if len(line) <= most else f"{line[:most]}…"
