"""What `labwright doctor` looks at beside the tools: each fault of the set-up as one finding, with its fix."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from labwright.compute.cluster import machine
from labwright.compute.database.place import PlaceUnknown, place_of
from labwright.compute.notify.channels import load_channels
from labwright.compute.runs.alert_rules import project_rules
from labwright.compute.slurm.probe import probe_slurm
from labwright.compute.slurm.resources import load_defaults
from labwright.domain.errors import Conflict, LabwrightError
from labwright.gpu import lease, lease_dir
from labwright.gpu.probe import run_detector
from labwright.llm.models import Models
from labwright.paths import ProjectPaths
from labwright.sandbox import containment
from labwright.server.listening import listen
from labwright.server.server_lock import server_is_up
from labwright.services.housekeeping import database_bytes
from labwright.settings import Settings, load_settings, unknown_tables

_DRIVER_SECONDS = 5.0
_MISSING = "Install bubblewrap, e.g. apt-get install bubblewrap."
_FORBIDDEN = (
    "bubblewrap is there and may not be used. Allow user namespaces: sysctl user.max_user_namespaces above 0, "
    "kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0; in a container its "
    "runtime has to, e.g. docker run --security-opt seccomp=unconfined. Then start Labwright again."
)


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    status: str  # ok, warn or fail
    said: str
    fix: str = ""


def look_at_set_up(paths: ProjectPaths) -> list[Finding]:
    settings = load_settings(paths.project)
    return [
        _tables(paths),
        _file_system(paths),
        _database(paths),
        _address(paths, settings),
        _lease_dir(settings),
        _driver(),
        _slurm(),
        _sandbox(),
        *_language_models(paths, settings),
    ]


def _sandbox() -> Finding:
    """What generated code could reach while a plan is validated."""
    held = containment()
    if held.kind == "bubblewrap":
        return Finding("sandbox", "ok", f"bubblewrap; generated code has no {', no '.join(held.contained[1:3])}")
    said = f"{held.reason}; generated code is limited, but reaches {', '.join(held.not_contained)}"
    return Finding("sandbox", "warn", said, _MISSING if held.reason.endswith("not installed") else _FORBIDDEN)


def _tables(paths: ProjectPaths) -> Finding:
    """Those of `labwright.toml` as the server would read them; what is said of models has a line of its own."""
    try:
        project_rules(paths.config)
        load_channels(paths)
        load_defaults(paths.project)
    except LabwrightError as error:
        return Finding("tables", "fail", error.message, error.hint)
    unknown = unknown_tables(paths.project)
    if unknown:
        return Finding("tables", "warn", "; ".join(unknown), f"Mend {paths.config}, then labwright down, labwright up.")
    return Finding("tables", "ok", "every table is known" if paths.config.exists() else "none")


def _file_system(paths: ProjectPaths) -> Finding:
    folder = paths.state if paths.state.exists() else paths.project
    kind = machine.file_system_of(folder.resolve())
    if machine.is_network(folder.resolve()):
        return Finding("file system", "ok", f"{kind}, a network one: the database is kept on a local disk")
    return Finding("file system", "ok", kind)


def _database(paths: ProjectPaths) -> Finding:
    try:
        database = place_of(paths)
    except PlaceUnknown as error:
        return Finding("database", "fail", error.message, error.hint)
    except PermissionError:
        return Finding("database", "fail", f"you may not look into {paths.state}", "Use --project.")
    if not database.exists():
        return Finding("database", "ok", "none yet; the first labwright up makes it")
    if not os.access(database, os.R_OK | os.W_OK):
        return Finding(
            "database", "fail", f"{database} may not be read and written by you", "Make it yours with chown."
        )
    try:
        said = _integrity(database)
    except sqlite3.Error as error:
        said = str(error)
    if said == "ok":
        return Finding("database", "ok", f"sound, {database_bytes(paths) / 1e6:.1f} MB on disk")
    fix = "labwright down, then labwright db rebuild: it keeps the damaged file aside"
    return Finding("database", "fail", f"damaged: {said}", fix)


def _integrity(database: Path) -> str:
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    try:
        return str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    finally:
        connection.close()


def _address(paths: ProjectPaths, settings: Settings) -> Finding:
    """Whether the next server could listen where the settings say, and who will reach it there."""
    where = f"{settings.host}:{settings.port}"
    if server_is_up(paths):
        return Finding("address", "ok", "in use by this project's server")
    try:
        listener = listen(settings.host, settings.port, chosen=True)
    except Conflict as error:
        return Finding("address", "warn", error.message, "labwright up takes a free port, unless you give it --port.")
    except LabwrightError as error:
        return Finding("address", "fail", error.message, "Mend host and port in labwright.toml, or leave them out.")
    listener.socket.close()
    if listener.node_url:
        return Finding("address", "ok", f"{where} is free; others come by this host's name, or one of allowed_hosts")
    return Finding("address", "ok", f"{where} is free; only this machine reaches it, others by ssh -L")


def _lease_dir(settings: Settings) -> Finding:
    path = settings.lease_dir
    try:
        lease.check(path)
    except LabwrightError as error:
        return Finding("GPU leases", "fail", error.message, error.hint)
    said = path if lease_dir.exists(path) else f"none taken yet; they will be in {path}"
    return Finding("GPU leases", "ok", said)


def _driver() -> Finding:
    found = run_detector(timeout=_DRIVER_SECONDS)
    if found.errors:
        fix = "Run nvidia-smi to see what the driver says; runs go on without GPUs until it answers."
        return Finding("GPU driver", "warn", "; ".join(found.errors), fix)
    if not found.gpus:
        return Finding("GPU driver", "ok", "none, so runs use the CPU")
    return Finding("GPU driver", "ok", f"{len(found.gpus)} GPUs by {found.source}, driver {found.driver_version}")


def _slurm() -> Finding:
    found = probe_slurm()
    if found.answers:
        said = "; ".join([found.said, *found.unwell])
        fix = "See sinfo -R; what can only run there waits." if found.unwell else ""
        return Finding("Slurm", "warn" if found.unwell else "ok", said, fix)
    if not found.is_configured:
        return Finding("Slurm", "ok", "none is set up here")
    fix = "Runs wait until it answers; to use this machine meanwhile: labwright cluster --set cpu_only"
    return Finding("Slurm", "fail", found.said, fix)


def _language_models(paths: ProjectPaths, settings: Settings) -> list[Finding]:
    """Each one that is configured gets one small question: a key is only good if it opens something."""
    try:
        models = Models(paths, settings)
    except LabwrightError as error:
        return [Finding("model", "fail", error.message, error.hint)]
    if not models.configured:
        return [Finding("model", "ok", "none is chosen here: offline rules, and nothing leaves this machine")]
    return [Finding("model", "ok" if one.ok else "fail", one.said, one.hint) for one in models.check()]
