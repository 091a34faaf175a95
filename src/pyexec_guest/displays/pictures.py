"""Pictures at a size that an answer can carry."""

import importlib
import io
from dataclasses import dataclass
from typing import Any

PIXELS = 1000
BYTES = 300_000
_COLOURS = 256
_QUALITIES = (85, 60)
_SHRINKINGS = 4
_LARGEST = 200_000_000
"""More pixels than this are not decoded."""


@dataclass(frozen=True)
class Picture:
    """An encoded picture."""

    media_type: str
    data: bytes
    width: int
    height: int

    @property
    def suffix(self) -> str:
        """The end of a file name for it."""
        return ".jpg" if self.media_type == "image/jpeg" else ".png"


def from_bytes(media_type: str, data: bytes) -> Picture:
    """Return a picture that was encoded elsewhere, made smaller where it must be and Pillow is there to do it."""
    try:
        pil = importlib.import_module("PIL.Image")
        with pil.open(io.BytesIO(data), formats=["PNG", "JPEG", "GIF", "WEBP"]) as image:
            width, height = image.size
            if max(width, height) <= PIXELS and len(data) <= BYTES and media_type in ("image/png", "image/jpeg"):
                return Picture(media_type, data, width, height)
            return from_image(image) if width * height <= _LARGEST else Picture(media_type, data, width, height)
    except Exception:  # noqa: BLE001 - no Pillow, or no picture: it is handed on as it is
        return Picture(media_type, data, 0, 0)


def from_image(image: Any) -> Picture:
    """Return a Pillow image as a PNG, or as a JPEG where that is much smaller, within the budget."""
    image.load()
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
        image = image.convert("RGBA" if "A" in image.mode else "RGB")
    picture = _encode(_within(image, PIXELS))
    for _attempt in range(_SHRINKINGS):
        if len(picture.data) <= BYTES:
            break
        side = int(max(picture.width, picture.height) * max(0.5, min(0.9, (BYTES / len(picture.data)) ** 0.5)))
        picture = _encode(_within(image, side))
    return picture


def _within(image: Any, side: int) -> Any:
    if max(image.size) <= side:
        return image
    smaller = image.convert("RGBA") if image.mode in ("P", "1") else image.copy()
    smaller.thumbnail((side, side))
    return smaller


def _encode(image: Any) -> Picture:
    width, height = image.size
    data = _saved(image, "PNG", optimize=False)
    if len(data) <= BYTES:
        return Picture("image/png", data, width, height)
    if "A" not in image.mode and image.mode != "P":
        flat = image.convert("RGB")
        # A drawing has few colours and stays sharp so; a photo does not, and is a JPEG.
        if flat.getcolors(1 << 16) is not None:
            few = _saved(flat.quantize(_COLOURS), "PNG")
            if len(few) <= BYTES:
                return Picture("image/png", few, width, height)
        for quality in _QUALITIES:
            data = _saved(flat, "JPEG", quality=quality)
            if len(data) <= BYTES:
                break
        return Picture("image/jpeg", data, width, height)
    few = _saved(image.convert("RGBA").quantize(_COLOURS), "PNG")
    return Picture("image/png", few, width, height)


def _saved(image: Any, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()
