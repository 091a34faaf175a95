"""What a web framework costs alone: reads a form, goes to a thread, and answers in JSON."""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def token(request: Request) -> JSONResponse:
    body = await request.body()
    return await run_in_threadpool(lambda: JSONResponse({"read": len(body)}))


if __name__ == "__main__":
    app = Starlette(routes=[Route("/token", token, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_config=None, access_log=False)
