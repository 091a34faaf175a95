import json
import os
from dataclasses import fields
from pathlib import Path

import pytest

from pyexec.environments.orders import ANSWER, Answer, BuildOrder, read_answer, write_answer

ORDER = BuildOrder(
    root="/state/environments",
    uv="/opt/uv",
    key="k" * 32,
    python="/usr/bin/python3",
    python_version="3.11.7",
    python_here=("3.11.7", "3.13.0"),
    requirements=("rich", "lib @ https://u:SECRET@x.org/lib.whl"),
    editables=("/srv/lib",),
    constraints=("numpy @ https://SECRET@x.org/numpy.whl",),
    options=("--index", "https://x.org"),
    index_url="https://u:SECRET@x.org/simple",
    paths=("/srv/app/src",),
    project="/srv/app",
    project_lock="/srv/uv.lock",
    digest="1" * 32,
    lock="rich==15.0.0\n",
    fresh_seconds=3600.0,
    folder="/state/executions/1",
    holder="1",
    holder_lock="/state/executions/1/lock",
    name="tools",
    owner="local|1000|",
    asked=("rich", "lib @ https://x.org/lib.whl"),
    link="/state/executions/1/tools",
    lacking="memray could not be installed.",
)


def test_an_order_arrives_as_it_was_given_on_one_line_of_plain_characters() -> None:
    assert "\n" not in ORDER.to_json()
    assert BuildOrder.from_json(ORDER.to_json()) == ORDER
    bare = BuildOrder(
        root="/", uv="uv", key=None, python="3.14", python_version=None, fresh_seconds=0.0, folder="/", holder="1",
        holder_lock="/lock",
    )  # fmt: skip
    assert BuildOrder.from_json(bare.to_json()) == bare
    odd = BuildOrder.from_json(json.dumps({**json.loads(bare.to_json()), "folder": os.fsdecode(b"/\xff")}))
    assert odd.to_json().isascii()
    assert BuildOrder.from_json(odd.to_json()) == odd


def test_every_part_of_an_order_is_tried_here() -> None:
    assert all(getattr(ORDER, field.name) not in (None, (), "") for field in fields(ORDER))


@pytest.mark.case("B037")
def test_what_may_have_credentials_in_it_is_not_shown() -> None:
    assert "SECRET" not in repr(ORDER)
    assert "SECRET" in ORDER.to_json()


def test_an_answer_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_answer(tmp_path) == Answer()
    for answer in (
        Answer(digest="1" * 32, python="/p", python_version="3.11.7", packages=("rich==1",), notes=("a", "b")),
        Answer(packages=()),
        Answer(failure="The disk is full.", failure_detail="error: No space left on device"),
    ):
        write_answer(tmp_path, answer)
        assert read_answer(tmp_path) == answer
    assert os.listdir(tmp_path) == [ANSWER]


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "3"])
def test_a_damaged_answer_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / ANSWER).write_text(content)
    assert read_answer(tmp_path) == Answer()
