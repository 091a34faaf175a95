"""Text that every store and client can hold."""


def legible(text: str) -> str:
    """Return `text` with lone surrogates, which stand for bytes of a path that are no text, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
