"""Verify tokens as the server over HTTP does: `verify_tokens.py ROUNDS`; prints CPU seconds per token, of each kind."""

import json
import sys
import time

import anyio

from pyexec.auth.development import DevelopmentKey
from pyexec.auth.verification import Verifier

RESOURCE = "http://127.0.0.1:8765/mcp"
TOKENS = 100


async def main(rounds: int) -> None:
    key = DevelopmentKey.make()
    verifier = Verifier([key.issuer], RESOURCE)
    taken: dict[str, list[float]] = {"new": [], "known": []}
    for _round in range(rounds):
        tokens = [key.token(RESOURCE) for _number in range(TOKENS)]
        for kind in taken:
            began = time.process_time()
            for token in tokens:
                await verifier.verify(token)
            taken[kind].append((time.process_time() - began) / TOKENS)
    print(json.dumps(taken))


anyio.run(main, int(sys.argv[1]))
