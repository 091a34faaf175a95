"""What a token has to be for: tools and resources, and the scopes that they need."""

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

SCOPES: Mapping[str, str] = {
    "python:execute": "Run Python code for you",
    "sessions:read": "See your sessions",
    "sessions:write": "Start, use and end your sessions",
    "files:read": "Read your files",
    "files:write": "Write and remove your files",
    "jobs:read": "See your jobs and what they printed",
    "jobs:write": "End and remove your jobs",
    "environments:write": "Make and remove your environments",
    "scripts:read": "Read your saved scripts",
    "scripts:write": "Save and remove your scripts",
    "admin": "Everything",
}
"""Every scope, with the words for people who are asked for it."""

ADMIN = "admin"

OFFERED = tuple(scope for scope in SCOPES if scope != ADMIN)
"""What clients are told of; `admin` is for whom an operator gives it."""

TOOLS: Mapping[str, str] = {
    "run_script_in_dir": "python:execute",
    "run_script_with_dependencies": "python:execute",
    "run_script_in_dir_async": "python:execute",
    "run_script_with_dependencies_async": "python:execute",
    "run_saved_script": "python:execute",
    "execute_python": "python:execute",
    "benchmark_script": "python:execute",
    "profile_script": "python:execute",
    "format_code": "python:execute",
    "analyze_code": "python:execute",
    "list_sessions": "sessions:read",
    "session_info": "sessions:read",
    "interrupt_session": "sessions:write",
    "restart_session": "sessions:write",
    "close_session": "sessions:write",
    "export_session": "sessions:read",
    "install_packages": "sessions:write",
    "list_files": "files:read",
    "download_file": "files:read",
    "upload_file": "files:write",
    "delete_file": "files:write",
    "get_job_output": "jobs:read",
    "py_job_status": "jobs:read",
    "list_running_jobs": "jobs:read",
    "py_list_jobs": "jobs:read",
    "py_cancel_job": "jobs:write",
    "kill_job": "jobs:write",
    "py_prune_jobs": "jobs:write",
    "cleanup_jobs": "jobs:write",
    "py_list_scripts": "scripts:read",
    "py_view_script": "scripts:read",
    "save_script": "scripts:write",
    "delete_script": "scripts:write",
    "list_environments": "environments:write",
    "lock_environment": "environments:write",
    "create_environment": "environments:write",
    "remove_environment": "environments:write",
}
"""The scope that each tool needs. A tool without one is for `admin` only; a test says that there is none."""

RESOURCES: Mapping[str, str] = {"job-stream": "jobs:read", "job-file": "jobs:read", "workspace": "files:read"}
"""The same for resources, by the scheme of their URIs."""


def holds(granted: Collection[str], needed: str) -> bool:
    """Tell whether what was granted covers a scope: `admin` covers all, writing covers reading."""
    if needed in granted or ADMIN in granted:
        return True
    area, _, kind = needed.partition(":")
    return kind == "read" and f"{area}:write" in granted


def of_resource(uri: str) -> str:
    """Return the scope that reading a resource needs."""
    return RESOURCES.get(urlsplit(uri).scheme, ADMIN)


def to_ask_for(granted: Collection[str], needed: Collection[str]) -> tuple[str, ...]:
    """Return what a client should ask for so that nothing it has is lost: what it has of ours, and what it needs."""
    return tuple(scope for scope in SCOPES if scope in granted or scope in needed)
