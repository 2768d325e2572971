"""Find out where this process logs: into its run, a new run on the project's server, or a local folder."""

from __future__ import annotations

import os
import sys
import time

from labwright.sdk.lines import fact_line, plain, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

RUN_ID, RUN_DIR, ATTEMPT = "LABWRIGHT_RUN_ID", "LABWRIGHT_RUN_DIR", "LABWRIGHT_ATTEMPT"
TRY = "LABWRIGHT_TRY"
OFFLINE_DIR = ".labwright-offline"
_STATE_DIR = ".labwright"
_TIMEOUT_SECONDS = 5.0  # once, and only if a server runs that does not respond
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK")


class LogTarget:
    """The run folder to log to, and what is known about the run."""

    def __init__(self, run_dir: str, run_id: str, name: str, *, owned: bool, url: str | None = None) -> None:
        self.run_dir = run_dir
        self.run_id = run_id
        self.name = name
        self.url = url
        self.owned = owned  # this process created the run, so it must record its end
        self.attempt = 1
        self.params: dict[str, Any] = {}
        self.wake = ""
        self.is_named = False  # the user named it; otherwise the name is the command

    def read_spec(self) -> None:
        """Read what the server wrote about the run. Logging works without it."""
        try:
            spec = _read_json(f"{self.run_dir}/spec.json")
            self.name = spec["run"].get("name") or self.name
            self.is_named = not spec["run"]["command"].strip().startswith(self.name.rstrip("…"))
            self.attempt = int(spec["run"].get("attempt") or 1)
            self.params = dict(spec["run"].get("params") or {})
            self.wake = str(spec["sidecar"].get("wake") or "")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass


def rank(environ: Mapping[str, str]) -> int:
    """Return `RANK` if it is set, else the first rank above 0 that a launcher set, else 0."""
    for name in _RANKS:
        value = environ.get(name, "")
        if value.isdigit() and (int(value) > 0 or name == "RANK"):
            return int(value)
    return 0


def is_rank_doubtful(environ: Mapping[str, str]) -> bool:
    """Return whether `RANK` may mean something else: launchers also set WORLD_SIZE."""
    return environ.get("RANK", "").isdigit() and not environ.get("WORLD_SIZE")


def inside_run(environ: Mapping[str, str]) -> LogTarget | None:
    run_dir = environ.get(RUN_DIR)
    if not run_dir:
        return None
    if not os.path.isdir(run_dir):
        say(f"cannot find the run folder {run_dir}")
        return None
    run_id = environ.get(RUN_ID) or os.path.basename(run_dir.rstrip("/"))
    server = environ.get("LABWRIGHT_SERVER_URL")
    place = LogTarget(run_dir, run_id, run_id, owned=False, url=_page(server, run_id) if server else None)
    place.read_spec()
    attempt = environ.get(ATTEMPT, "")
    place.attempt = int(attempt) if attempt.isdigit() else place.attempt
    return place


def find_project(start: str) -> str:
    """Return the nearest parent folder with a state folder, or `start`."""
    folder = start
    while not os.path.isdir(os.path.join(folder, _STATE_DIR)):
        parent = os.path.dirname(folder)
        if parent == folder:
            return start
        folder = parent
    return folder


def on_server(project: str, about: dict[str, Any], key: str) -> LogTarget | None:
    """Create a run on the project's server. Return None, after a message, if that does not work."""
    state = os.path.join(project, _STATE_DIR)
    try:
        server = _read_json(f"{state}/server.json")
        if not _is_up(server):
            return None
        with open(f"{state}/token", encoding="utf-8") as token:
            body = dict(about)
            if server["host"] == os.uname().nodename:  # with the same clock, it must not create the run too late
                body["answer_by"] = time.time() + 0.8 * _TIMEOUT_SECONDS
            made = _post(server["url"], token.read().strip(), body, key)
        place = LogTarget(made["run_dir"], made["id"], made.get("name") or "", owned=True)
        place.url = _page(server["url"], place.run_id)
        if not os.access(place.run_dir, os.W_OK):
            raise OSError(f"its folder {place.run_dir} cannot be written")
    except FileNotFoundError:
        return None
    except Exception as error:  # noqa: BLE001 - a foreign server, a proxy, a half-written file: log locally
        say(f"the server of {project} did not accept the run ({error})")
        return None
    place.read_spec()
    return place


def _is_up(server: dict[str, Any]) -> bool:
    """Check the server before a token is sent: the port may belong to another process by now."""
    if server["host"] != os.uname().nodename:
        return not server["url"].split("://")[-1].startswith(("127.", "localhost", "[::1]"))
    return bool(server["boot_id"] == _boot_id() and _start_time(server["pid"]) == server["start_time"])


def _read_json(path: str) -> Any:
    import json

    with open(path, "rb") as file:
        return json.loads(file.read())


def _post(url: str, token: str, body: dict[str, Any], key: str) -> Any:
    import json
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    address = urlsplit(url)
    make = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = make(address.hostname or "", address.port, timeout=_TIMEOUT_SECONDS)
    try:
        headers = {"Content-Type": "application/json", "X-Auth-Token": token, "Idempotency-Key": key}
        connection.request("POST", "/runs/external", json.dumps(body).encode(), headers)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    if response.status not in (200, 201):
        raise OSError(f"{response.status}: {content[:300].decode(errors='replace')}")
    return json.loads(content)


def _page(server_url: str, run_id: str) -> str:
    return f"{server_url.rstrip('/')}/#/runs/{run_id}"


def offline(project: str, about: dict[str, Any]) -> LogTarget | None:
    """Create a folder that `labwright import` can import later. Return None if no folder can be written."""
    from tempfile import gettempdir

    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
    for parent in dict.fromkeys((project, os.getcwd(), gettempdir())):
        try:
            return _make_offline(os.path.join(parent, OFFLINE_DIR), name, about)
        except OSError as error:
            say(f"cannot log into {parent} ({error.strerror})")
    return None


def _make_offline(parent: str, name: str, about: dict[str, Any]) -> LogTarget:
    run_dir = os.path.join(parent, name)
    os.makedirs(f"{run_dir}/metrics", mode=0o700)
    try:
        with open(f"{run_dir}/run.json.new", "wb") as record:
            record.write(fact_line(about))
        os.replace(f"{run_dir}/run.json.new", f"{run_dir}/run.json")
        ignore = os.path.join(parent, ".gitignore")
        if not os.path.exists(ignore):
            with open(ignore, "w", encoding="utf-8") as file:
                file.write("*\n")
    except OSError:
        _remove(parent, run_dir)
        raise
    return LogTarget(run_dir, name, about["name"], owned=True, url=f"file://{run_dir}")


def _remove(parent: str, run_dir: str) -> None:
    """Remove a half-made folder: it cannot be imported."""
    from shutil import rmtree

    rmtree(run_dir, ignore_errors=True)
    try:
        os.rmdir(parent)
    except OSError:
        pass  # other runs are in it


def about_process() -> dict[str, Any]:
    """Return the facts about this process that `POST /runs/external` needs."""
    return {
        "command": plain(_command()),
        "workdir": os.getcwd(),
        "pid": os.getpid(),
        "start_time": _start_time(os.getpid()) or 0,
        "boot_id": _boot_id(),
        "host": os.uname().nodename,
    }


def script_name() -> str:
    return os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0] or "python"


def _command() -> str:
    import shlex

    original = getattr(sys, "orig_argv", None)
    if original:
        return shlex.join(original)
    arguments = list(sys.argv)
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and arguments:
        arguments[:1] = ["-m", spec.name[: -len(".__main__")] if spec.name.endswith(".__main__") else spec.name]
    return shlex.join([sys.executable or "python", *arguments])


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _start_time(pid: int) -> int | None:
    """Return the start in clock ticks since boot, or None if it has ended. It identifies a process: PIDs are reused."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the name may contain spaces and brackets
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
