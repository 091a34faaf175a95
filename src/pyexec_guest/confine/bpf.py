"""Turns rules into a program of the kernel's packet filter, which is what seccomp runs at each system call."""

import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from pyexec_guest.confine.policy import ABSENT, ALLOW, DENY, KILL_PROCESS, Choice, Clear, Rule

X32_BIT = 0x40000000

LOAD, JUMP, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_FARTHEST = 255


class Instruction(NamedTuple):
    """One instruction: on a condition, `yes` or `no` more instructions are left out."""

    code: int
    yes: int
    no: int
    value: int


def assemble(rules: "Mapping[int, Rule]", architecture: int, *, x32: bool) -> "list[Instruction]":
    """Return the program for one architecture; a call of any other ends the process.

    Args:
        rules: By the number of the call; a number without a rule is `ABSENT`.
        architecture: AUDIT_ARCH_* of the calls that the numbers belong to.
        x32: Whether the architecture has the x32 variants of calls, which are all `ABSENT`.
    """
    steps = _steps({**rules, **({X32_BIT: ABSENT} if x32 else {})})
    return [
        Instruction(LOAD, 0, 0, _ARCHITECTURE),
        Instruction(JUMP_EQUAL, 1, 0, architecture),
        Instruction(RETURN, 0, 0, KILL_PROCESS),
        Instruction(LOAD, 0, 0, _NUMBER),
        *_search(steps),
    ]


def encode(program: "list[Instruction]") -> bytes:
    """Return the program as the kernel reads it."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _steps(rules: "Mapping[int, Rule]") -> "list[tuple[int, Rule]]":
    """Return from which number on which rule holds, without two equal ones in a row."""
    numbers = sorted({0, *rules, *(number + 1 for number in rules)})
    steps = [(number, rules.get(number, ABSENT)) for number in numbers]
    return steps[:1] + [after for before, after in pairwise(steps) if before[1] != after[1]]


def _search(steps: "list[tuple[int, Rule]]") -> "list[Instruction]":
    if len(steps) == 1:
        return _decide(steps[0][1])
    middle = len(steps) // 2
    below, above = _search(steps[:middle]), _search(steps[middle:])
    if len(below) <= _FARTHEST:
        head = [Instruction(JUMP_AT_LEAST, len(below), 0, steps[middle][0])]
    else:
        head = [Instruction(JUMP_AT_LEAST, 0, 1, steps[middle][0]), Instruction(JUMP, 0, 0, len(below))]
    return head + below + above


def _decide(rule: Rule) -> "list[Instruction]":
    if isinstance(rule, int):
        return [_return(rule)]
    load = Instruction(LOAD, 0, 0, _ARGUMENTS + 8 * rule.argument)
    if isinstance(rule, Clear):
        return [load, Instruction(JUMP_ANY_BIT, 0, 1, rule.bits), _return(DENY), _return(ALLOW)]
    return [load, *_cases(rule), _return(rule.otherwise)]


def _cases(rule: Choice) -> "list[Instruction]":
    found: list[Instruction] = []
    for value, action in rule.cases.items():
        found += [Instruction(JUMP_EQUAL, 0, 1, value), _return(action)]
    return found


def _return(action: int) -> Instruction:
    return Instruction(RETURN, 0, 0, action)
