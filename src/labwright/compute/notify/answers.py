"""How a channel answers an approval: a token for that one question, which ends with its time or with the answer."""

from __future__ import annotations

import time
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Scope
from labwright.domain.clock import rfc3339
from labwright.tokens import mint

_SECONDS_AN_HOUR = 3600


def answer_to(lab: Lab, approval_id: str) -> dict[str, Any]:
    seconds = lab.settings.notify_answer_hours * _SECONDS_AN_HOUR
    return {
        "method": "POST",
        "url": f"{lab.node_url or lab.url}/approvals/{approval_id}/respond",
        "header": "X-Auth-Token",
        "token": mint(lab.token, Scope.ANSWER, approval_id, seconds),
        "expires_at": rfc3339(time.time() + seconds),
    }
