"""Charts can be labelled in Chinese, Japanese and Korean, whatever style is chosen and however late matplotlib comes.

What matplotlib finds for the font that is asked for is followed by fonts that have these characters; it goes through
them character by character.
"""

import sys
from pathlib import Path
from typing import Any

from pyexec_guest.hooks import ImportHooks

PACKAGED = "noto_cjk_*/*.otf"
"""Where packages have such fonts, below a folder that modules are imported from."""

FAMILIES = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans CJK TC",
    "Noto Sans CJK KR",
    "Source Han Sans",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "IPAexGothic",
    "NanumGothic",
)
"""Fonts of packages or of the system that have such characters, the first choice first; the last two lack some."""

_MOST = 3


def install() -> None:
    """Have matplotlib fall back to these fonts once it is imported, or from now on when it has been."""
    ImportHooks().after("matplotlib.font_manager", _patch)


def _patch(manager: Any) -> None:
    fonts = manager.fontManager
    known = {font.fname for font in fonts.ttflist}
    for file in _packaged():
        if str(file) not in known:
            fonts.addfont(file)
    families = {
        name: weights
        for name in FAMILIES
        if (weights := {_weight(manager, font.weight) for font in fonts.ttflist if font.name == name})
    }
    usual = manager.FontManager._find_fonts_by_props  # noqa: SLF001 - there is no other place for all styles

    def found(self: Any, prop: Any, fontext: str = "ttf", *args: Any, **kwargs: Any) -> "list[Any]":
        paths = usual(self, prop, fontext, *args, **kwargs)
        if fontext != "ttf":
            return paths
        wanted = manager.FontProperties(prop) if isinstance(prop, str) else prop.copy()
        wanted.set_file(None)
        weight = _weight(manager, wanted.get_weight())
        for family in list(families)[:_MOST]:
            wanted.set_family(family)
            # One that is not there would be told to whoever draws.
            wanted.set_weight(min(families[family], key=lambda there: abs(there - weight)))
            path = self.findfont(wanted, fontext)
            if path not in paths:
                paths.append(path)
        return paths

    if families:
        manager.FontManager._find_fonts_by_props = found  # noqa: SLF001


def _weight(manager: Any, weight: "str | int") -> int:
    return manager.weight_dict.get(weight, 400) if isinstance(weight, str) else int(weight)


def _packaged() -> "list[Path]":
    return [file for place in dict.fromkeys(sys.path) if place for file in sorted(Path(place).glob(PACKAGED))]
