"""The verbs of skills (list, get, render, save, delete) and the values of their variables."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.alert import AlertStatus
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.event import Event, EventType
from labwright.domain.plan import PlanStatus
from labwright.domain.run import ACTIVE, RunStatus
from labwright.services import alerts, cluster
from labwright.services.runs import queue
from labwright.services.sweeps import results as sweep_views
from labwright.skills.quoting import fenced, plain, quoted
from labwright.skills.registry import SkillRegistry
from labwright.skills.skill import Skill, SkillSource, read_skill, rendered, variables_in
from labwright.store import plans, runs
from labwright.tokens import write_header_file

View = dict[str, Any]


def every(lab: Lab) -> list[View]:
    """Return all skills without their texts."""
    return [listed.facts() for listed in _registry(lab).every()]


def get(lab: Lab, skill_id: str) -> View:
    registry = _registry(lab)
    return _view(registry, registry.get(skill_id))


def render(lab: Lab, skill_id: str, given: Mapping[str, str], asker: Asker) -> View:
    """Return the text for a model. Given values override live ones; an unknown variable is an error."""
    return _rendered(lab, _registry(lab).get(skill_id), given, asker)


def preview(lab: Lab, skill_id: str, given: Mapping[str, str], asker: Asker, draft: str | None) -> View:
    """Return a preview, also of an unsaved draft. Unknown variables stay as they are written."""
    skill = _registry(lab).get(skill_id) if draft is None else read_skill(draft, SkillSource.PROJECT)
    unknown = {name: f"{{{{{name}}}}}" for name in skill.variables}
    return _rendered(lab, skill, given, asker, unknown)


def _rendered(
    lab: Lab, skill: Skill, given: Mapping[str, str], asker: Asker, defaults: Mapping[str, str] | None = None
) -> View:
    for name in given:
        if name not in skill.variables:
            known = ", ".join(skill.variables) or "none"
            raise Invalid(
                f"The skill {skill.id} has no variable {name!r}.",
                hint=f"It has: {known}.",
                field=("variables", name),
            )
    needed = variables_in(skill.body)
    values = {name: LIVE[name](lab, asker) for name in needed if name in LIVE and name not in given}
    return {
        "id": skill.id,
        "title": skill.title,
        "text": rendered(skill.body, {**(defaults or {}), **values, **given}),
    }


def create(lab: Lab, text: str, actor: Actor) -> View:
    """Create a skill of the project. It overrides a built-in skill with the same name."""
    with lab.skill_lock:
        draft_skill = read_skill(text, SkillSource.PROJECT)
        if _registry(lab).is_own(draft_skill.id):
            raise Conflict(
                f"The project already has a skill {draft_skill.id}.",
                hint=f"Replace it with PUT /prompt-skills/{draft_skill.id}.",
            )
        return _save(lab, text, draft_skill.id, actor)


def replace(lab: Lab, skill_id: str, text: str, actor: Actor) -> View:
    with lab.skill_lock:
        return _save(lab, text, skill_id, actor)


def _save(lab: Lab, text: str, skill_id: str, actor: Actor) -> View:
    registry = _registry(lab)
    with lab.db.transaction() as tx:
        tx.emit(Event(type=EventType.SKILL_SAVED, actor=str(actor), time=now(), data={"skill_id": skill_id}))
        saved = registry.save(text, skill_id)
    return _view(registry, saved)


def delete(lab: Lab, skill_id: str, actor: Actor) -> None:
    with lab.skill_lock, lab.db.transaction() as tx:
        tx.emit(Event(type=EventType.SKILL_DELETED, actor=str(actor), time=now(), data={"skill_id": skill_id}))
        _registry(lab).delete(skill_id)


def _registry(lab: Lab) -> SkillRegistry:
    return SkillRegistry(lab.paths.skills)


def _view(registry: SkillRegistry, skill: Skill) -> View:
    return {**registry.listed(skill.id).facts(), "text": skill.text}


_LONGEST_CONTEXT = 8_000
_LONGEST_PLANS = 3_000
_LONGEST_CLUSTER = 4_000
_ACTIVE_SHOWN, _FAILED_SHOWN, _SWEEPS_SHOWN, _ALERTS_SHOWN, _PLANS_SHOWN, _CARDS_SHOWN = 12, 6, 8, 8, 10, 16
_UNDATED = "?"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The reader of the text: the address of the server from there, and its token."""

    url: str
    token: str
    header_name: str  # name of the file that holds the token
    is_local: bool  # its shell can read files on this machine
    api_catalog: Callable[[], str]


def experiment_context(lab: Lab, _asker: Asker) -> str:
    """Return counts, active runs, recent failures, sweeps with their best, and pending alerts."""
    counts = runs.count_by_status(lab.db.reader())
    counted = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    active = _newest(lab, *sorted(ACTIVE), limit=_ACTIVE_SHOWN)
    failed = _newest(lab, RunStatus.FAILED, RunStatus.LOST, limit=_FAILED_SHOWN)
    newest_sweeps, _ = sweep_views.page(lab, _SWEEPS_SHOWN, None)
    pending, _ = alerts.page(lab, AlertStatus.PENDING, None, None, _ALERTS_SHOWN, None)
    lines = [
        f"runs: {counted or 'none yet'}",
        *_listed("active runs", [_active_line(run) for run in active]),
        *_listed("newest failed runs", [_failed_line(run) for run in failed]),
        *_listed("newest sweeps", [_sweep_line(sweep) for sweep in newest_sweeps]),
        *_listed("alerts that wait for an answer", [_alert_line(alert.to_dict()) for alert in pending]),
    ]
    return fenced(lines, _LONGEST_CONTEXT)


def _listed(title: str, lines: list[str]) -> Iterator[str]:
    yield f"{title}: {'none' if not lines else ''}".rstrip()
    yield from (f"  {line}" for line in lines)


def _newest(lab: Lab, *statuses: str, limit: int) -> list[Json]:
    records, _ = runs.page(lab.db.reader(), runs.Filter(status=statuses), limit, None)
    return [json.loads(record) for record in queue.with_reasons(lab, records)]


def _active_line(run: Json) -> str:
    since = run["started_at"] or run["launched_at"] or _UNDATED
    reason = f", reason {quoted(run['status_reason'])}" if run["status_reason"] else ""
    return f"{run['id']} {run['status']} since {since}, name {quoted(run['name'], 80)}{reason}{_of_sweep(run)}"


def _failed_line(run: Json) -> str:
    why = ": ".join(filter(None, (run["status_reason"], run["error"]))) or f"exit code {run['exit_code']}"
    ended = run["ended_at"] or _UNDATED
    return (
        f"{run['id']} {run['status']} at {ended}, name {quoted(run['name'], 80)}, reason {quoted(why)}{_of_sweep(run)}"
    )


def _of_sweep(run: Json) -> str:
    return f", in {run['sweep_id']}" if run["sweep_id"] else ""


def _sweep_line(sweep: Json) -> str:
    progress = sweep["progress"]
    done = f"{progress['finished']} of {progress['total']} finished, {progress['failed']} failed"
    facts = f"{sweep['id']} {sweep['method']} {sweep['status']}, name {quoted(sweep['name'], 80)}, {done}"
    best, metric = sweep["best"], sweep["metric"]
    if not best or not metric:
        return facts
    spread = f" ± {best['std']:.6g}" if best["std"] is not None else ""
    params = quoted(json.dumps(best["params"], ensure_ascii=False), 120)
    value = f"{plain(metric['key'], 60)} {best['mean']:.6g}{spread} (n={best['n']}, {metric['goal']})"
    return f"{facts}, best {value} by {best['run_id']} with {params}"


def _alert_line(alert: Json) -> str:
    choices = " / ".join(plain(choice, 40) for choice in alert["choices"][:6])
    about = alert["run_id"] or alert["sweep_id"]
    question = f"message {quoted(alert['message'])}, choices {choices or 'any'}"
    return f"{alert['id']} {alert['severity']} about {about}, {question}"


def existing_plans(lab: Lab, _asker: Asker) -> str:
    statuses = tuple(status for status in PlanStatus if status is not PlanStatus.ARCHIVED)
    found, more = plans.page(lab.db.reader(), statuses, None, _PLANS_SHOWN, None)
    if not found:
        return "None yet."
    lines = [f"@{plan.id} {plan.status}, title {quoted(plan.title, 120)}" for plan in found]
    return fenced([*lines, *(["older ones: GET /plans"] if more is not None else [])], _LONGEST_PLANS)


def cluster_state(lab: Lab, _asker: Asker) -> str:
    found = cluster.show(lab)["cluster"]
    advice = found["recommended"]
    lines = [
        f"type {found['type']}, status {found['status']}, {found['source']} at {found['last_detected_at']}",
        f"gpu_count {found['gpu_count']}, cpu_count {found['cpu_count']}, memory_total_mb {found['memory_total_mb']}",
        f"node_count {found['node_count']}, shared_machine {str(found['shared_machine']).lower()}",
        f"recommended: gpuwrap {advice['gpuwrap']}, max_parallel {advice['max_parallel']}",
        *(_card_line(card) for card in found["gpus"][:_CARDS_SHOWN]),
        *(_partition_line(partition) for partition in found["partitions"][:_CARDS_SHOWN]),
    ]
    return fenced(lines, _LONGEST_CLUSTER)


def _card_line(card: Json) -> str:
    lease = card["lease"]
    holder = f"held by {plain(lease['run_id'], 40)}" if lease else f"{len(card['processes'])} other processes"
    used = f"{card['memory_used_mb']} of {card['memory_total_mb']} MB, {card['utilization']} % busy"
    return f"gpu {card['index']} {plain(card['name'], 60)}: {used}, {holder}"


def _partition_line(partition: Json) -> str:
    return (
        f"partition {plain(partition['name'], 60)}: {plain(partition['state'], 20)}, {partition['nodes']} nodes,"
        f" {partition['cpus']} cpus, {partition['gpus']} gpus{', default' if partition['default'] else ''}"
    )


def server_url(_lab: Lab, asker: Asker) -> str:
    return asker.url


def auth_token(_lab: Lab, asker: Asker) -> str:
    return asker.token


def auth_header(lab: Lab, asker: Asker) -> str:
    """Return a header from a file if possible: all users of a machine can see command lines."""
    if not asker.is_local:
        return f'-H "X-Auth-Token: {asker.token}"'
    return f"-H {shlex.quote(f'@{write_header_file(lab.paths.headers, asker.header_name, asker.token)}')}"


def api_catalog(_lab: Lab, asker: Asker) -> str:
    return asker.api_catalog()


LIVE: dict[str, Callable[[Lab, Asker], str]] = {
    maker.__name__: maker
    for maker in (
        experiment_context,
        existing_plans,
        cluster_state,
        server_url,
        auth_token,
        auth_header,
        api_catalog,
    )
}
