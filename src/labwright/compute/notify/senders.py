"""Send notifications: by webhook, to Slack, to the desktop. No error message contains an address."""

from __future__ import annotations

import html
import http.client
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from labwright.compute.notify.message import Notification
from labwright.domain.alert import Severity
from labwright.domain.errors import LabwrightError
from labwright.version import __version__

_HERE = ("localhost", "127.0.0.1", "::1")
_SLACK_TEXT = 2900  # a block may have 3000
_DESKTOP_TEXT = 500
_DESKTOP_REASON = 200
_LONGEST_PAUSE = 3600.0
_URGENCY = {Severity.INFO: "low", Severity.WARNING: "normal", Severity.CRITICAL: "critical"}
_MARKS = {Severity.INFO: ":information_source:", Severity.WARNING: ":warning:", Severity.CRITICAL: ":rotating_light:"}


class NotSent(LabwrightError):
    """The message did not arrive."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Sender(Protocol):
    @property
    def target(self) -> str:
        """The destination without its secret parts."""

    def problem(self) -> str:
        """Return why this cannot work here, or ""."""

    def send(self, message: Notification, key: str, timeout: float) -> None:
        """Send a notification. A repeated one has the same key. Raises NotSent."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects, which could lead the message anywhere: they count as errors."""

    def redirect_request(self, *_request: Any) -> None:
        return None


@dataclass(frozen=True, slots=True, repr=False)
class Webhook:
    url: str

    @property
    def target(self) -> str:
        address = urlsplit(self.url)
        port = f":{address.port}" if address.port else ""
        return f"{address.scheme}://{address.hostname}{port}/…"

    def problem(self) -> str:
        return ""

    def send(self, message: Notification, key: str, timeout: float) -> None:
        body = json.dumps(self.body(message, key), ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Idempotency-Key": key,
            "User-Agent": f"labwright/{__version__}",
        }
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310  # http and https only: see channels
        is_here = urlsplit(self.url).hostname in _HERE  # then without the proxy of the environment
        opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({} if is_here else None))
        try:
            with opener.open(request, timeout=timeout):
                pass
        except urllib.error.HTTPError as error:
            with error:
                redirect = f"answered with a redirect ({error.code}), which is not followed"
                reason = redirect if 300 <= error.code < 400 else f"answered with status {error.code}"
                raise NotSent(reason, _retry_after(error)) from None
        except (OSError, http.client.HTTPException) as error:
            raise NotSent(_describe(error, timeout)) from None

    def body(self, message: Notification, key: str) -> dict[str, Any]:
        fields = {name: value for name, value in message.to_dict().items() if name != "answer" or value}
        return {"id": key, **fields}


class Slack(Webhook):
    """Slack's incoming webhooks, and services with the same format."""

    __slots__ = ()

    def body(self, message: Notification, key: str) -> dict[str, Any]:  # noqa: ARG002
        mark = _MARKS[message.severity]
        lines = [f"{mark} *{_for_slack(message.title)}*", _for_slack(message.text)]
        lines += [f"• {_for_slack(line)}" for line in message.details]
        context = [f"project {message.project}", (message.run or {}).get("id") or ""]
        if message.how_to_answer:
            context.append(f"`{message.how_to_answer}`")
        below = " · ".join(_for_slack(part) for part in context if part)
        text = "\n".join(filter(None, lines))[:_SLACK_TEXT]
        return {
            "text": _for_slack(f"{message.title}: {message.text}")[:_SLACK_TEXT],
            "blocks": [
                {"type": "section", "text": {"type": "mrkdwn", "text": text}},
                {"type": "context", "elements": [{"type": "mrkdwn", "text": below}]},
            ],
        }


def is_private(url: str) -> bool:
    """Return whether the connection is encrypted or stays on this machine."""
    address = urlsplit(url)
    return address.scheme == "https" or address.hostname in _HERE


def _for_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _retry_after(error: urllib.error.HTTPError) -> float:
    text = error.headers.get("Retry-After", "").strip()
    try:
        seconds = float(text) if text.isdecimal() else parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_PAUSE)


def _describe(error: Exception, timeout: float) -> str:
    """Describe the kind of error, never its own text: that may contain the address."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(reason, OSError) and reason.strerror:
        return f"cannot be reached: {reason.strerror}"
    return f"cannot be reached: {type(reason).__name__}"


@dataclass(frozen=True, slots=True)
class Desktop:
    @property
    def target(self) -> str:
        return "this machine's desktop"

    def problem(self) -> str:
        if shutil.which("notify-send") is None:
            return "notify-send is not installed"
        has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        return "" if has_display else "the server has no display"

    def send(self, message: Notification, key: str, timeout: float) -> None:  # noqa: ARG002
        text = html.escape("\n".join([message.text, *message.details])[:_DESKTOP_TEXT], quote=False)
        options = [f"--urgency={_URGENCY[message.severity]}", "--app-name=Labwright"]
        command = ["notify-send", *options, "--", message.title[:200], text]
        command = [word.replace("\0", "") for word in command]  # an argument must not contain NUL
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise NotSent(f"notify-send did not end within {timeout:g} s") from None
        except subprocess.CalledProcessError as error:
            reason = " ".join(error.stderr.decode(errors="replace").split())[:_DESKTOP_REASON]
            raise NotSent(f"notify-send ended with {error.returncode}: {reason}".rstrip(": ")) from None
        except OSError as error:
            raise NotSent(f"notify-send cannot be started: {error.strerror}") from None
