"""What the operator's own programs call: is it well, and what does it do."""

from starlette.responses import JSONResponse, Response

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.errors import IdentityError
from pyexec_idp.http.counting import MEDIA_TYPE, Metrics
from pyexec_idp.keys.ring import KeyRing
from pyexec_idp.stores.clients import ResourceStore


class Operations:
    """Health and figures; nothing in them is about anybody."""

    def __init__(self, ring: KeyRing, resources: ResourceStore, metrics: Metrics) -> None:
        self._ring = ring
        self._resources = resources
        self._metrics = metrics

    def health(self, _call: Call) -> Response:
        """Tell whether tokens could be given now: the database answers, and there is a key."""
        try:
            self._resources.all()
            self._ring.signing()
        except IdentityError as error:
            return JSONResponse({"status": "failing", "error": error.code}, status_code=503)
        return JSONResponse({"status": "ok"})

    def metrics(self, _call: Call) -> Response:
        """Count what happened since the start, as Prometheus reads it."""
        return Response(self._metrics.text(), media_type=MEDIA_TYPE)
