"""Charts are labelled in Chinese, Japanese and Korean, and text is UTF-8 everywhere."""

import pytest

from tests.walls.interface import Wall, run

pytestmark = pytest.mark.root

DRAW = """
import io, json, logging, warnings
warnings.simplefilter("error")
told = []
class Keep(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
logging.getLogger("matplotlib").addHandler(Keep())
import matplotlib.pyplot as plt
BOX = chr(0xE123)  # Nobody has this one: what is drawn for it is what is drawn for every missing character.
def drawn(text, **how):
    figure = plt.figure(figsize=(2, 1))
    figure.text(0.1, 0.4, text, fontsize=20, **how)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    plt.close(figure)
    return out.getvalue()
def all_differ(**how):
    pictures = [drawn(character, **how) for character in "中文日語한국어か"]
    with warnings.catch_warnings(record=True) as missing:
        warnings.simplefilter("always")
        pictures.append(drawn(BOX, **how))
    assert any("57635" in str(each.message) for each in missing), missing
    return len(set(pictures)) == len(pictures)
"""


@pytest.mark.parametrize(
    "style",
    [
        pytest.param("", id="the usual one"),
        pytest.param("plt.rcParams['font.family'] = 'serif'", id="another family"),
        pytest.param("plt.style.use('ggplot'); plt.rcParams['font.sans-serif'] = ['DejaVu Sans']", id="a style's own"),
        pytest.param("import matplotlib; matplotlib.rcdefaults()", id="none at all"),
    ],
)
def test_chinese_japanese_and_korean_are_drawn_without_boxes_in_any_style(wall: Wall, style: str) -> None:
    sandbox = wall.sandbox()
    try:
        ran = run(sandbox, f"{DRAW}\n{style}\nprint(json.dumps([all_differ(), all_differ(weight='bold'), told]))")
    finally:
        sandbox.close()
    assert ran.value == [True, True, []]


def test_pictures_for_print_have_these_characters_too(wall: Wall) -> None:
    sandbox = wall.sandbox()
    code = """
plt.title("中文 日本語 한국어")
for kind in ("svg", "pdf"):
    plt.savefig(f"/work/a.{kind}")
print(json.dumps(told))
"""
    try:
        ran = run(sandbox, DRAW + code)
    finally:
        sandbox.close()
    assert ran.value == []


def test_text_is_utf_8_in_files_and_in_programs(wall: Wall) -> None:
    sandbox = wall.sandbox()
    code = """
import json, subprocess, sys
with open("/work/😀", "w") as file:
    file.write("日本語 😀")
said = subprocess.run([sys.executable, "-c", "print('👩‍👩‍👧 ñ')"], capture_output=True, text=True)
print("😀", said.stdout.strip(), file.encoding, open("/work/😀", "rb").read().decode("utf-8"))
"""
    try:
        ran = run(sandbox, code)
    finally:
        sandbox.close()
    assert (ran.out, ran.error) == ("😀 👩‍👩‍👧 ñ UTF-8 日本語 😀\n", None)
