"""The tree of calls and what is told of it."""

from pyexec_guest.profiler.page import flame_graph
from pyexec_guest.profiler.tree import Tree, outline, top


def tree_of(*stacks: "tuple[str, float]") -> Tree:
    tree = Tree()
    for names, own in stacks:
        node = -1
        for name in names:
            node = tree.child(node, (name, "a.py", 1))
        tree.own[node] += own
        tree.counts[node] += 1
    return tree


def test_a_function_that_calls_itself_counts_once_in_its_total() -> None:
    rows = {row[0]: row[3:] for row in tree_of(("a", 1.0), ("ab", 2.0), ("aba", 4.0), ("abab", 8.0)).rows()}
    assert rows == {"a": [5.0, 15.0, 2], "b": [10.0, 14.0, 2]}


def test_rows_are_those_first_by_own_and_those_first_by_total() -> None:
    rows: list[list[object]] = [["root", "a.py", 1, 0.0, 1000.0, 1]]
    rows.extend([f"f{number}", "a.py", 1, float(number), float(number), 1] for number in range(1, 500))
    kept = [row[0] for row in top(rows)]
    assert kept[0] == "f499"
    assert kept[-1] == "root"
    assert len(kept) == 201


def test_the_outline_shows_large_calls_below_their_callers() -> None:
    assert outline(tree_of(("a", 1.0), ("ab", 8.0), ("ac", 0.1), ("d", 0.9)), "seconds") == (
        "9.100 s 91% a  a.py:1\n 8.000 s 80% b  a.py:1\n0.900 s 9% d  a.py:1"
    )
    assert outline(tree_of(("a", 3 * 2**20)), "bytes") == "3.0 MiB 100% a  a.py:1"
    assert outline(Tree(), "bytes") == ""


def test_a_flame_graph_has_a_bound() -> None:
    tree = Tree()
    for number in range(20_000):
        tree.own[tree.child(-1, (f"f{number}", "a.py", number))] += 1.0
    assert len(flame_graph(tree, "seconds", "time", "a.py")) < 2_000_000
