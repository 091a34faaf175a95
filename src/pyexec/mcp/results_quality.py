"""The structured results of the tools that format and analyse."""

from pydantic import BaseModel, Field

from pyexec.mcp.results import Optional, Result


class FormattedCode(Result):
    """A formatted source. `error`, `line` and `column` are there when it cannot be parsed."""

    formatter: str = ""
    changed: bool = False
    written: bool = False
    path: Optional[str] = None
    formatted: Optional[str] = None
    diff: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None
    notes: Optional[list[str]] = None


class FixEdit(BaseModel):
    """Text to put in place of what lies between two places."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class FindingFix(BaseModel):
    """How a finding can be mended."""

    message: str
    safe: bool
    edits: list[FixEdit]


class FindingRow(BaseModel):
    """One finding."""

    file: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None
    severity: str
    tool: str
    rule: str
    message: str
    url: Optional[str] = None
    fix: Optional[FindingFix] = None


class AnalysedCode(Result):
    """What tools found in code, by place; `total` counts all."""

    findings: list[FindingRow] = Field(default_factory=list[FindingRow])
    total: int = 0
    truncated: bool = False
    severities: dict[str, int] = Field(default_factory=dict[str, int])
    tools: dict[str, int] = Field(default_factory=dict[str, int])
    fixed: Optional[int] = None
    fixed_source: Optional[str] = None
    notes: Optional[list[str]] = None
