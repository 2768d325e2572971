"""The checks of `labwright doctor` that need the server's code: each has a status, a message and a fix."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass

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
    "bubblewrap is installed but not allowed. Allow user namespaces: sysctl user.max_user_namespaces above 0, "
    "kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0. In a container, "
    "allow them in its runtime, e.g. docker run --security-opt seccomp=unconfined. Then restart Labwright."
)


@dataclass(frozen=True, slots=True)
class SetupCheck:
    name: str
    status: str  # ok, warn or fail
    said: str
    fix: str = ""


def check_setup(paths: ProjectPaths) -> list[SetupCheck]:
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


def _sandbox() -> SetupCheck:
    """Check what generated code can reach while a plan is validated."""
    held = containment()
    if held.kind == "bubblewrap":
        return SetupCheck("sandbox", "ok", f"bubblewrap; generated code has no {', no '.join(held.contained[1:3])}")
    said = f"{held.reason}; generated code is limited, but can reach {', '.join(held.not_contained)}"
    return SetupCheck("sandbox", "warn", said, _MISSING if held.reason.endswith("not installed") else _FORBIDDEN)


def _tables(paths: ProjectPaths) -> SetupCheck:
    """Check the tables of `labwright.toml`, except those of models, which have their own check."""
    try:
        project_rules(paths.config)
        load_channels(paths)
        load_defaults(paths.project)
    except LabwrightError as error:
        return SetupCheck("tables", "fail", error.message, error.hint)
    unknown = unknown_tables(paths.project)
    if unknown:
        return SetupCheck("tables", "warn", "; ".join(unknown), f"Fix {paths.config}, then restart the server.")
    return SetupCheck("tables", "ok", "every table is known" if paths.config.exists() else "none")


def _file_system(paths: ProjectPaths) -> SetupCheck:
    folder = paths.state if paths.state.exists() else paths.project
    kind = machine.file_system_of(folder.resolve())
    if machine.is_network(folder.resolve()):
        return SetupCheck("file system", "ok", f"{kind} (network): the database is on a local disk")
    return SetupCheck("file system", "ok", kind)


def _database(paths: ProjectPaths) -> SetupCheck:
    try:
        database = place_of(paths)
    except PlaceUnknown as error:
        return SetupCheck("database", "fail", error.message, error.hint)
    except PermissionError:
        return SetupCheck("database", "fail", f"you may not read {paths.state}", "Use --project.")
    if not database.exists():
        return SetupCheck("database", "ok", "none yet; the first labwright up creates it")
    if not os.access(database, os.R_OK | os.W_OK):
        return SetupCheck("database", "fail", f"you may not read and write {database}", "Change its owner with chown.")
    try:
        with contextlib.closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            said = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        said = str(error)
    if said == "ok":
        return SetupCheck("database", "ok", f"valid, {database_bytes(paths) / 1e6:.1f} MB on disk")
    fix = "Run labwright down, then labwright db rebuild. It keeps a copy of the damaged file."
    return SetupCheck("database", "fail", f"damaged: {said}", fix)


def _address(paths: ProjectPaths, settings: Settings) -> SetupCheck:
    """Check whether the next server can listen at the configured address, and who can reach it there."""
    where = f"{settings.host}:{settings.port}"
    if server_is_up(paths):
        return SetupCheck("address", "ok", "in use by this project's server")
    try:
        listener = listen(settings.host, settings.port, chosen=True)
    except Conflict as error:
        return SetupCheck("address", "warn", error.message, "labwright up uses another free port.")
    except LabwrightError as error:
        return SetupCheck("address", "fail", error.message, "Fix host and port in labwright.toml, or omit them.")
    listener.socket.close()
    if listener.node_url:
        return SetupCheck(
            "address", "ok", f"{where} is free; other machines reach it by this host's name or a name in allowed_hosts"
        )
    return SetupCheck("address", "ok", f"{where} is free; only this machine can reach it, others with ssh -L")


def _lease_dir(settings: Settings) -> SetupCheck:
    path = settings.lease_dir
    try:
        lease.check(path)
    except LabwrightError as error:
        return SetupCheck("GPU leases", "fail", error.message, error.hint)
    said = path if lease_dir.exists(path) else f"none taken yet; they will be in {path}"
    return SetupCheck("GPU leases", "ok", said)


def _driver() -> SetupCheck:
    found = run_detector(timeout=_DRIVER_SECONDS)
    if found.errors:
        fix = "Run nvidia-smi to see the driver's error. Runs do not use GPUs until it responds."
        return SetupCheck("GPU driver", "warn", "; ".join(found.errors), fix)
    if not found.gpus:
        return SetupCheck("GPU driver", "ok", "no GPU; runs use the CPU")
    return SetupCheck("GPU driver", "ok", f"{len(found.gpus)} GPUs by {found.source}, driver {found.driver_version}")


def _slurm() -> SetupCheck:
    found = probe_slurm()
    if found.answers:
        said = "; ".join([found.said, *found.unwell])
        fix = "See sinfo -R. Runs that need these nodes wait." if found.unwell else ""
        return SetupCheck("Slurm", "warn" if found.unwell else "ok", said, fix)
    if not found.is_configured:
        return SetupCheck("Slurm", "ok", "not configured")
    fix = "Runs wait until Slurm responds. To use this machine meanwhile: labwright cluster --set cpu_only"
    return SetupCheck("Slurm", "fail", found.said, fix)


def _language_models(paths: ProjectPaths, settings: Settings) -> list[SetupCheck]:
    """Send one small request to each configured model, since only that proves a key."""
    try:
        models = Models(paths, settings)
    except LabwrightError as error:
        return [SetupCheck("model", "fail", error.message, error.hint)]
    if not models.configured:
        return [SetupCheck("model", "ok", "none configured: offline rules, and nothing leaves this machine")]
    return [SetupCheck("model", "ok" if one.ok else "fail", one.said, one.hint) for one in models.check()]
