"""Wild loops: start one from a goal, show it, pause, resume, steer and stop it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from labwright.agent.tools.runs import GPUS
from labwright.agent.tools.sweeps import BUDGET, METRIC, PARALLEL, PARAMETERS, SEEDS, full_metric
from labwright.agent.tools.tool import Json, Tool, ToolContext, several, text, whole
from labwright.agent.wild import verbs
from labwright.agent.wild.wanted import NewWild
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import WILD, is_id
from labwright.domain.wild import Wild
from labwright.services import ownership

_BRIEF = ("id", "goal", "status", "status_reason", "sweep_id", "criterion", "budget", "used", "best", "created_at")
_NEWEST = 1000  # beginnings of ids are looked up among these
Verb = Callable[[Lab, str, Actor], Wild]


def list_wild(context: ToolContext, limit: int = 20) -> Json:
    found, more = verbs.page(context.lab, limit, None)
    return {"wild": [_brief(context, loop) for loop in found], "more": more is not None}


def _find(context: ToolContext, reference: str) -> Wild:
    """Return the loop with this id, or with this beginning of an id, or the newest for `last`."""
    prefix = reference if reference.startswith(f"{WILD}-") else f"{WILD}-{reference}"
    if is_id(prefix, WILD):
        return verbs.get(context.lab, prefix)
    newest, _ = verbs.page(context.lab, _NEWEST, None)
    named = [] if prefix == f"{WILD}-" else newest  # nothing is not the beginning of an id
    found = newest[:1] if reference == "last" else [one for one in named if one.id.startswith(prefix)]
    if len(found) > 1:
        raise Invalid(f"{reference!r} matches more than one wild loop.", hint="Type more of the id.")
    if not found:
        raise NotFound(f"There is no wild loop {reference!r}.", hint="List them with list_wild.")
    return found[0]


def get_wild(context: ToolContext, wild_id: str) -> Json:
    return verbs.view(context.lab, _find(context, wild_id))


def start_wild(
    context: ToolContext,
    goal: str,
    budget: Json | None = None,
    script: str | None = None,
    metric: Json | None = None,
    parameters: Json | None = None,
    protect: list[str] | None = None,
    seeds: list[int] | None = None,
    gpus: int | None = None,
    parallel: int | None = None,
) -> Json:
    wanted = NewWild(
        goal=goal,
        budget=budget or {},
        script=script,
        metric=full_metric(metric),
        parameters=parameters or {},
        protect=tuple(protect or ()),
        seeds=tuple(dict.fromkeys(seeds or ())),
        gpus=gpus,
        parallel=parallel,
    )
    once = context.once("start_wild")
    return _brief(context, verbs.start(context.lab, wanted, context.proposer, context.actor, once))


def _change(context: ToolContext, wild_id: str, *, verb: str, change: Verb) -> Json:
    loop = _own(context, wild_id, verb)
    return _brief(context, change(context.lab, loop, context.actor))


def steer_wild(context: ToolContext, wild_id: str, text: str) -> Json:
    loop = _own(context, wild_id, "steer")
    return _brief(context, verbs.steer(context.lab, loop, text, context.actor, context.once("steer_wild")))


def _own(context: ToolContext, reference: str, verb: str) -> str:
    """Return the loop's id, once it is clear that the caller may change the loop."""
    found = _find(context, reference)
    if context.session is None:
        ownership.check_wild(context.lab, found.id, context.actor)
    elif not context.is_own(found.created_by, found.session_id):
        facts = f"{found.goal[:200]!r}, {found.status}, started by {found.created_by}"
        context.needs_approval(f"{verb.capitalize()} the wild loop {found.id} ({facts})?", wild_id=found.id)
    return found.id


def _brief(context: ToolContext, loop: Wild) -> Json:
    shown = verbs.view(context.lab, loop)
    return {name: shown[name] for name in _BRIEF}


_WILD = {"wild_id": text("the loop's id, the beginning of it, or `last`")}


def _verb(name: str, description: str, change: Verb) -> Tool:
    """A tool that changes a loop, after the check whose loop it is."""
    do: Callable[..., Json] = partial(_change, verb=name.removesuffix("_wild"), change=change)
    return Tool(name=name, description=description, do=do, takes=_WILD, needs=("wild_id",), writes=True, destroys=True)


TOOLS = (
    Tool(
        name="list_wild",
        description="List wild loops, newest first.",
        do=list_wild,
        takes={"limit": whole("how many to return", 1, 100)},
    ),
    Tool(
        name="get_wild",
        description="Get one wild loop: each iteration with its result and decision, the remaining budget, the report.",
        do=get_wild,
        takes=_WILD,
        needs=("wild_id",),
    ),
    Tool(
        name="start_wild",
        description=(
            "Let the server search by itself: a baseline, then one idea after another, until the goal is reached or "
            "the budget is used. If the goal leaves something open, the error is the question to answer."
        ),
        do=start_wild,
        takes={
            "goal": text("what to reach, by which metric, and what to vary", minLength=1, maxLength=20_000),
            "budget": {**BUDGET, "description": "40 runs by default"},
            "script": text("if the goal does not name one", maxLength=4096),
            "metric": METRIC,
            "parameters": PARAMETERS,
            "protect": several("evaluation files and folders that must not change"),
            "seeds": SEEDS,
            "gpus": GPUS,
            "parallel": PARALLEL,
        },
        needs=("goal",),
        writes=True,
    ),
    _verb("pause_wild", "Start no further experiments of a loop; running ones continue.", verbs.pause),
    _verb("resume_wild", "Continue a paused loop. Only a person can give it more budget.", verbs.resume),
    _verb("stop_wild", "End a loop and all of its runs; its report says what was found.", verbs.stop),
    Tool(
        name="steer_wild",
        description="Give a loop a remark that its next proposal takes into account.",
        do=steer_wild,
        takes={**_WILD, "text": text("the remark", minLength=1, maxLength=4000)},
        needs=("wild_id", "text"),
        writes=True,
    ),
)
