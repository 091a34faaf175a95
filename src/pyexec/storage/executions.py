"""The records of executions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Update, bindparam, delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from pyexec.domain.errors import RecordsUnavailableError
from pyexec.domain.executions import ACTIVE, Execution, Outcome, Process, State
from pyexec.storage.database import Database
from pyexec.storage.schema import executions

_ROWS_AT_ONCE = 500


class DuplicateRequestError(Exception):
    """The owner has used this request id before."""


class _SomeAreKnownError(Exception):
    """Not all of them are new; nothing was done."""


class ExecutionStore:
    """Records, by owner. Somebody else's id answers like one that does not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Made once: putting a statement together costs as much as running it.
        self._insert = database.insert(executions).on_conflict_do_nothing(index_elements=["id"])
        missing = database.insert(executions).on_conflict_do_nothing()
        self._insert_missing = missing.execution_options(preserve_rowcount=True)

    def require_reachable(self) -> None:
        """Refuse what could not be noted down, before it is begun.

        Raises:
            RecordsUnavailableError: The database server does not answer.
        """
        self._database.require_reachable()

    @property
    def is_at_hand(self) -> bool:
        """Whether `require_reachable` has nothing to ask."""
        return self._database.is_at_hand

    def add(self, execution: Execution) -> None:
        """Store a new record, unless it is there: somebody may have found it in its folder and done so meanwhile.

        Raises:
            DuplicateRequestError: Its request id is taken.
            RecordsUnavailableError: The database server does not answer.
        """
        try:
            self._add(execution)
        except RecordsUnavailableError as error:
            if not error.may_be_kept:
                raise
            self._add(execution)  # Most often it was one connection that was lost, and the next one tells.

    def add_missing(self, found: Iterable[Execution]) -> int:
        """Store records that were lost, in this order; pass over those that are there. Return how many there were."""
        added = 0
        with self._database.writing() as connection:
            for execution in found:
                added += connection.execute(self._insert_missing, to_values(execution)).rowcount
        return added

    def get(self, owner: str, execution_id: str) -> Execution | None:
        """Return one record, or None."""
        if not _may_be_in(execution_id):
            return None
        with self._database.reading() as connection:
            row = connection.execute(_GET, {"of": owner, "wanted": execution_id}).mappings().first()
        return None if row is None else from_values(row)

    def by_request(self, owner: str, request_id: str) -> Execution | None:
        """Return the record that a repeated call means, or None."""
        return self._first(self._of(owner, executions.c.request_id == request_id))

    def ids_like(self, owner: str, beginning: str) -> list[str]:
        """Return the ids that begin so, at most two: one is an answer, two are a question."""
        if not _may_be_in(beginning):
            return []
        query = select(executions.c.id).where(
            executions.c.owner == owner, executions.c.id.startswith(beginning, autoescape=True)
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query.limit(2)))

    def page(self, owner: str, *, states: Collection[State] | None, limit: int) -> tuple[list[Execution], int]:
        """Return up to `limit` records in these states (None: any), newest first, and how many there are."""
        conditions = [] if states is None else [executions.c.state.in_(states)]
        query = self._of(owner, *conditions).order_by(executions.c.number.desc()).limit(limit)
        counting = select(func.count()).select_from(executions).where(executions.c.owner == owner, *conditions)
        with self._database.reading() as connection:
            rows = connection.execute(query).mappings().all()
            total = int(connection.execute(counting).scalar_one())
        return [from_values(row) for row in rows], total

    def active(self, owner: str) -> list[Execution]:
        """Return the records not known to have ended, oldest first."""
        # Sorted here: asked to sort, SQLite walks through all that has ended instead of using the index of states.
        with self._database.reading() as connection:
            rows = connection.execute(_ACTIVE, {"of": owner}).mappings().all()
        return [from_values(row) for row in sorted(rows, key=lambda row: row["number"])]

    def latest_of(self, owner: str, sources: Sequence[str]) -> dict[str, Execution]:
        """Return the newest record of each of these script files that was ever run, by its path."""
        found: dict[str, Execution] = {}
        with self._database.reading() as connection:
            for start in range(0, len(sources), _ROWS_AT_ONCE):
                part = sources[start : start + _ROWS_AT_ONCE]
                newest = (
                    select(func.max(executions.c.number))
                    .where(executions.c.owner == owner, executions.c.source.in_(part))
                    .group_by(executions.c.source)
                )
                query = self._of(owner, executions.c.number.in_(newest))
                found |= {row["source"]: from_values(row) for row in connection.execute(query).mappings()}
        return found

    def in_session(self, owner: str, session: str, since: float, limit: int) -> list[Execution]:
        """Return the latest records of a session since some moment, oldest first."""
        query = self._of(owner, executions.c.session == session, executions.c.created_at >= since)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(executions.c.number.desc()).limit(limit)).mappings().all()
        return [from_values(row) for row in reversed(rows)]

    def those(self, owner: str, execution_ids: Sequence[str]) -> list[Execution]:
        """Return the records of these ids, as far as there are any; at most some hundred at once."""
        with self._database.reading() as connection:
            rows = connection.execute(self._of(owner, executions.c.id.in_(execution_ids))).mappings().all()
        return [from_values(row) for row in rows]

    def count_active(self, owner: str) -> int:
        """Return how many records are not known to have ended."""
        with self._database.reading() as connection:
            return int(connection.execute(_COUNT_ACTIVE, {"of": owner}).scalar_one())

    def count(self, owner: str, states: Collection[State] | None = None) -> int:
        """Return how many records there are in these states (None: any)."""
        query = select(func.count()).select_from(executions).where(executions.c.owner == owner)
        if states is not None:
            query = query.where(executions.c.state.in_(states))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def ended(self, owner: str) -> list[Execution]:
        """Return the records that have ended, oldest first."""
        query = self._of(owner, executions.c.state.not_in(ACTIVE)).order_by(executions.c.number)
        with self._database.reading() as connection:
            return [from_values(row) for row in connection.execute(query).mappings()]

    def mark_running(self, execution: Execution) -> None:
        """Note that one has started; a record that has gone further stays as it is."""
        self._update(_MARK_RUNNING, execution)

    def finish(self, execution: Execution) -> bool:
        """Note the outcome, once; whoever comes second changes nothing. Tell whether this was the first."""
        return self._update(_FINISH, execution)

    def finish_many(self, ended: Sequence[Execution]) -> list[Execution]:
        """Do the same for several, in one transaction; return those for which this was the first."""
        if len(ended) == 1:
            return [one for one in ended if self.finish(one)]
        with self._database.writing() as connection:
            return _finish(connection, ended)

    def add_finished(self, ended: Sequence[Execution]) -> list[Execution]:
        """Store records of executions that have ended, whether they were noted before or not, in one transaction.

        Return those whose end was not noted before.
        """
        by_age = sorted(ended, key=lambda one: (one.created_at, one.id))
        with suppress(_SomeAreKnownError), self._database.writing() as connection:
            if by_age and connection.execute(self._insert_missing, [*map(to_values, by_age)]).rowcount < len(by_age):
                raise _SomeAreKnownError
            return list(ended)
        begun = [to_values(replace(one, state="pending", outcome=None)) for one in by_age]
        with self._database.writing() as connection:
            connection.execute(self._insert_missing, begun)
            return _finish(connection, ended)

    def forget(self, owner: str, execution_id: str) -> None:
        """Remove the record of one that was never handed over, as if it had not been asked for."""
        query = delete(executions).where(executions.c.owner == owner, executions.c.id == execution_id)
        with self._database.writing() as connection:
            connection.execute(query)

    def remove(self, owner: str, execution_ids: Iterable[str]) -> int:
        """Remove ended records; return how many there were."""
        ids = list(execution_ids)
        removed = 0
        for start in range(0, len(ids), _ROWS_AT_ONCE):
            part = ids[start : start + _ROWS_AT_ONCE]
            query = delete(executions).where(
                executions.c.owner == owner, executions.c.id.in_(part), executions.c.state.not_in(ACTIVE)
            )
            with self._database.writing() as connection:
                removed += connection.execute(query).rowcount
        return removed

    def owners(self) -> list[str]:
        """Return everybody who has a record."""
        with self._database.reading() as connection:
            return list(connection.scalars(select(executions.c.owner).distinct()))

    def owners_of_active(self) -> list[str]:
        """Return everybody who has a record that is not known to have ended."""
        query = select(executions.c.owner).where(executions.c.state.in_(sorted(ACTIVE))).distinct()
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def known(self, execution_ids: Sequence[str]) -> set[str]:
        """Return which of these ids have a record, whoever owns it."""
        found: set[str] = set()
        with self._database.reading() as connection:
            for start in range(0, len(execution_ids), _ROWS_AT_ONCE):
                part = execution_ids[start : start + _ROWS_AT_ONCE]
                found.update(connection.scalars(select(executions.c.id).where(executions.c.id.in_(part))))
        return found

    def _update(self, statement: Update, execution: Execution) -> bool:
        with self._database.writing() as connection:
            return connection.execute(statement, _change(execution)).rowcount > 0

    def _add(self, execution: Execution) -> None:
        try:
            with self._database.writing() as connection:
                connection.execute(self._insert, to_values(execution))
        except IntegrityError as error:
            if self.get(execution.owner, execution.id) is not None:
                return
            if execution.request_id is None or self.by_request(execution.owner, execution.request_id) is None:
                raise
            raise DuplicateRequestError(execution.request_id) from error

    def _of(self, owner: str, *conditions: ColumnElement[bool]) -> Select[Any]:
        return select(executions).where(executions.c.owner == owner, *conditions)

    def _first(self, query: Select[Any]) -> Execution | None:
        with self._database.reading() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else from_values(row)


def _may_be_in(execution_id: str) -> bool:
    """Tell whether there may be such an id at all: databases refuse to look for what they could not store."""
    return execution_id.isascii() and execution_id.isprintable()


_CHANGING = ("state", "started_at", "ended_at", "pid", "outcome")


def _change(execution: Execution) -> dict[str, Any]:
    values = to_values(execution)
    return {"of": execution.owner, "wanted": execution.id, **{f"new_{name}": values[name] for name in _CHANGING}}


# Made once: putting a statement together costs as much as running it.
_MINE = (executions.c.owner == bindparam("of"), executions.c.id == bindparam("wanted"))
_GET = select(executions).where(*_MINE)
_ACTIVE = select(executions).where(executions.c.owner == bindparam("of"), executions.c.state.in_(sorted(ACTIVE)))
_COUNT_ACTIVE = (
    select(func.count())
    .select_from(executions)
    .where(executions.c.owner == bindparam("of"), executions.c.state.in_(sorted(ACTIVE)))
)
_NEW = {name: bindparam(f"new_{name}", type_=executions.c[name].type) for name in _CHANGING}
# Not `in_`, which cannot be done for many at once.
_IS_ACTIVE = or_(*(executions.c.state == state for state in sorted(ACTIVE)))
_FINISH = update(executions).where(*_MINE, _IS_ACTIVE).values(_NEW)
# Always in the same order: two servers that lock the same rows must not wait for each other.
_UNFINISHED = (
    select(executions.c.owner, executions.c.id)
    .where(executions.c.id.in_(bindparam("wanted", expanding=True)), executions.c.state.in_(sorted(ACTIVE)))
    .order_by(executions.c.id)
    .with_for_update()
)
_MARK_RUNNING = update(executions).where(*_MINE, executions.c.state == "pending").values(_NEW)


def _finish(connection: Connection, ended: Sequence[Execution]) -> list[Execution]:
    given: dict[tuple[str, str], Execution] = {}
    for one in ended:
        given.setdefault((one.owner, one.id), one)
    ids = sorted(one.id for one in given.values())
    unfinished: set[tuple[str, str]] = set()
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        rows = connection.execute(_UNFINISHED, {"wanted": ids[start : start + _ROWS_AT_ONCE]})
        unfinished.update((owner, execution_id) for owner, execution_id in rows)
    first = [one for key, one in given.items() if key in unfinished]
    if first:
        connection.execute(_FINISH, [_change(one) for one in first])
    return first


def to_values(execution: Execution) -> dict[str, Any]:
    """Return a record as plain values: a row of the table, and what lies in the execution's folder."""
    row = {name: getattr(execution, name) for name in _PLAIN_COLUMNS}
    outcome = execution.outcome
    return row | {
        "notes": list(execution.notes),
        "dependencies": None if execution.dependencies is None else list(execution.dependencies),
        "ended_at": outcome.ended_at if outcome else None,
        "outcome": outcome_to_json(outcome) if outcome else None,
    }


def from_values(values: Mapping[Any, Any]) -> Execution:
    """Read what `to_values` made."""
    plain = {name: values[name] for name in _PLAIN_COLUMNS if name != "session"}
    dependencies = values["dependencies"]
    outcome = values["outcome"]
    return Execution(
        **plain,
        session=values.get("session"),  # Not in folders that an earlier version has written.
        notes=tuple(values["notes"]),
        dependencies=None if dependencies is None else tuple(dependencies),
        outcome=outcome_from_json(outcome) if outcome else None,
    )


_PLAIN_COLUMNS = (
    "id",
    "owner",
    "state",
    "kind",
    "label",
    "request_id",
    "directory",
    "source",
    "strategy",
    "python",
    "python_version",
    "timeout_seconds",
    "stream",
    "session",
    "created_at",
    "started_at",
    "pid",
)


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain values."""
    values = {name: getattr(outcome, name) for name in Outcome.__slots__}
    values["leftover_processes"] = [{"pid": left.pid, "command": left.command} for left in outcome.leftover_processes]
    return values


def outcome_from_json(values: Mapping[str, Any]) -> Outcome:
    """Read what `outcome_to_json` made; names this version does not know are passed over."""
    known: dict[str, Any] = {name: values[name] for name in Outcome.__slots__ if name in values}
    known["leftover_processes"] = tuple(
        Process(pid=item["pid"], command=item["command"]) for item in values.get("leftover_processes", ())
    )
    return Outcome(**known)
