"""Cells that are Python and nothing else: run as IPython runs them, without the steps that change nothing.

IPython looks for magics, commands and `await` with two tokenizers and a parser, and runs every cell as a coroutine;
for a short one that takes longer than all the rest of it. What is not sure to be plain is left to IPython, and so is
every cell where the shell is not as it was made: it has been given transformers, callbacks, another way to run code.
"""

import ast
import bdb
import re
import sys
from types import CodeType
from typing import Any

from IPython.core import interactiveshell
from IPython.core.autocall import IPyAutocall
from IPython.core.macro import Macro

_PERHAPS_NOT_PLAIN = re.compile(
    r"""
      \A\s              # it begins with space: what all lines have of that is taken away
    | ^[ \t]+$          # a line of nothing but space: that is taken away
    | [\r\v\f\x1c-\x1e\x85\u2028\u2029]  # lines that end otherwise
    | \?                # help
    | ^[ \t]*[%!,;/]    # a magic, a command, a call without parentheses
    | =[\s\\]*[%!]      # what a magic or a command gives
    | ^[ \t]*(?:>>>|\.\.\.) | In[ ]\[    # prompts
    """,
    re.VERBOSE | re.MULTILINE,
)
_OF_MAGICS = "get_ipython().run_"
_NAME = re.compile(r"[\w.*]*")


class PlainCells:
    """Knows a plain cell, and runs it.

    Args:
        shell: The one of this process, as it has just been made.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._callbacks: dict[str, list[Any]] = shell.events.callbacks
        self._transformers: Any = shell.input_transformer_manager
        self._prefilter: Any = shell.prefilter_manager
        # IPython 8 counts a cell when it has run, IPython 9 when it begins.
        self._counts_first = shell.displayhook.prompt_count != shell.execution_count
        self._made_with = [list(one) for one in self._lists()]

    def text_of(self, raw: str) -> "str | None":
        """Return what IPython makes of the text of a cell, where that is sure to be this text; else None."""
        if not raw or _PERHAPS_NOT_PLAIN.search(raw) or self._lists() != self._made_with:
            return None
        cell = raw if raw.endswith("\n") else raw + "\n"
        if cell.find("\n") == len(cell) - 1 and not self._is_plain_line(cell[:-1]):
            return None
        return cell

    def takes(self, raw: str) -> "str | None":
        """Return the text of a cell that can be run here; else None."""
        if may_await(raw) or _OF_MAGICS in raw or not self._runs_as_made():
            return None
        return self.text_of(raw)

    def run(self, raw: str, cell: str) -> "BaseException | None":
        """Run a cell and store it in the history; return what it raised."""
        shell = self._shell
        number = shell.execution_count
        if self._counts_first:
            shell.execution_count = number + 1
        shell.events.trigger("pre_execute")
        error: BaseException | None
        try:
            shell.history_manager.store_inputs(number, cell, raw)
            shell.logger.log(cell, raw)
            with shell.builtin_trap:
                name = shell.compile.cache(cell, number, raw_code=raw)
                with shell.display_trap:
                    error = self._run(cell, name)
        except BaseException as escaped:  # noqa: BLE001 - an interrupt between two steps of ours
            error = escaped
        if not self._counts_first:
            shell.execution_count = number + 1
        shell.last_execution_succeeded = error is None
        shell.events.trigger("post_execute")
        if self._callbacks["post_run_cell"]:
            # It has asked for that itself.
            result = _result(raw, number, error)
            shell.events.trigger("post_run_cell", result)
            result.error_in_exec = None
        return error

    def _run(self, cell: str, name: str) -> "BaseException | None":
        shell = self._shell
        compiler = shell.compile
        expression = _expression(cell, name, compiler.flags)
        if expression is not None:
            return self._execute(expression, shows=True)
        try:
            nodes = compiler.ast_parse(cell, filename=name).body
        except (OverflowError, SyntaxError, ValueError, TypeError, MemoryError) as error:
            shell.showsyntaxerror()
            return error
        last = len(nodes) - 1
        for at, node in enumerate(nodes):
            try:
                if at == last and isinstance(node, ast.Expr):
                    code = _compiled(compiler, ast.Interactive([node]), name, "single", cell)
                else:
                    code = _compiled(compiler, ast.Module([node], []), name, "exec", cell)
            except Exception as error:  # noqa: BLE001 - what can be parsed need not be Python
                shell.showtraceback()
                return error
            raised = self._execute(code)
            if raised is not None:
                return raised
        return None

    def _execute(self, code: CodeType, *, shows: bool = False) -> "BaseException | None":
        __tracebackhide__ = "__ipython_bottom__"  # To IPython's own tracebacks: what is above is not the user's.
        shell = self._shell
        shell.sys_excepthook = before = sys.excepthook
        sys.excepthook = shell.excepthook
        try:
            try:
                value = eval(code, shell.user_global_ns, shell.user_ns)  # noqa: S307 - its purpose
                if shows:
                    sys.displayhook(value)
            finally:
                sys.excepthook = before
        except SystemExit as ending:
            shell.showtraceback(exception_only=True)
            return ending
        except bdb.BdbQuit as quitting:
            return quitting
        except shell.custom_exceptions as error:
            shell.CustomTB(*sys.exc_info())
            return error
        except BaseException as error:  # noqa: BLE001 - a program's
            shell.showtraceback(running_compiled_code=True)
            return error
        return None

    def _lists(self) -> "list[list[Any]]":
        """Return what has a say in the text of a cell."""
        return [
            self._transformers.cleanup_transforms,
            self._transformers.line_transforms,
            self._transformers.token_transformers,
            self._shell.input_transformers_post,
            self._prefilter.transformers,
            self._prefilter.checkers,
        ]

    def _runs_as_made(self) -> bool:
        """Tell whether nobody wants cells of this shell to be run in another way, or to hear of them."""
        shell, callbacks = self._shell, self._callbacks
        own: dict[str, Any] = shell.__dict__
        changed = (
            callbacks["pre_run_cell"]
            or callbacks["post_run_cell"]
            or shell.ast_transformers
            or shell.trio_runner
            or shell.ast_node_interactivity != "last_expr"
            or "run_cell" in own
            or "run_cell_async" in own
            or "run_ast_nodes" in own
            or "run_code" in own
            or "transform_cell" in own
            or "transform_ast" in own
        )
        return not changed

    def _is_plain_line(self, line: str) -> bool:
        """Tell whether a cell of one line is no call of a magic or a macro by its bare name."""
        shell = self._shell
        first = line[:1]
        if not (first.isalpha() or first == "_"):
            return True
        found = _NAME.match(line)
        name = found[0] if found else ""
        if shell.autocall or isinstance(shell.user_ns.get(name), (Macro, IPyAutocall)):
            return False
        try:
            return shell.find_magic(name) is None
        except Exception:  # noqa: BLE001 - it is looked for when it is called, and cannot be had
            return False


def may_await(code: str) -> bool:
    """Tell whether there may be an `await` outside of all functions: none can be without one of these words."""
    return "await" in code or "async" in code


def _compiled(compiler: Any, tree: "ast.Module | ast.Interactive", name: str, mode: str, cell: str) -> CodeType:
    if "__future__" in cell:
        return compiler(tree, name, mode)  # It takes note of what it is to do in all cells to come.
    flags: int = compiler.flags
    return compile(tree, name, mode, flags, dont_inherit=True)


def _expression(cell: str, name: str, flags: int) -> "CodeType | None":
    """Return the code of a cell that is one line and an expression, without making a tree of it; else None."""
    if "=" in cell or cell.find("\n") != len(cell) - 1:
        return None
    try:
        return compile(cell, name, "eval", flags, dont_inherit=True)
    except Exception:  # noqa: BLE001 - it is something else: the parser will say what
        return None


def _result(raw: str, number: int, error: "BaseException | None") -> Any:
    """Return what IPython tells of a cell that has been run."""
    ipython: Any = interactiveshell
    result = ipython.ExecutionResult(ipython.ExecutionInfo(raw, True, False, True, None))
    result.execution_count, result.error_in_exec = number, error
    return result
