"""The variables by which an operator sets what may be done with the files of sessions."""

from pyexec.domain.limits import MEGABYTE
from pyexec.settings.reading import Variable, whole

FILE_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PYEXEC_UPLOAD_MB",
        meaning="How much one call of `upload_file` may write; a larger file is sent in pieces.",
        default="8",
        allowed="a whole number between 1 and 1024",
        read=whole(1, 1024, MEGABYTE),
        limit="upload",
    ),
    Variable(
        name="PYEXEC_DOWNLOAD_MB",
        meaning="How much one call of `download_file` may read; a larger file is read by ranges.",
        default="8",
        allowed="a whole number between 1 and 1024",
        read=whole(1, 1024, MEGABYTE),
        limit="download",
    ),
)
