"""Re-exports for people who import smart async from the old package."""

from pyexec.smart_async import JobCancelledError, add_job_tools, create_progress_callback, smart_async

__all__ = ["JobCancelledError", "add_job_tools", "create_progress_callback", "smart_async"]
