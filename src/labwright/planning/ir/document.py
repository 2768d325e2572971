"""From the draft of an experiment to the plan document: the same facts, for people."""

from __future__ import annotations

from labwright.domain.cluster import Cluster, ClusterType, GpuwrapAdvice
from labwright.domain.plan_document.document import (
    LOOK_IN_REVIEW,
    ApproachStep,
    ComputeSetup,
    Criterion,
    Effort,
    Gpuwrap,
    Metrics,
    PlanEnvironment,
    PlannedMetric,
    PlanSections,
    Risk,
    SweptParameter,
)
from labwright.planning.ir.compile import grid_of
from labwright.planning.ir.drafts import ExperimentDraft
from labwright.planning.ir.values import write_value
from labwright.planning.scan import ProjectScan

_BUILD_ON, _MAKE_ENVIRONMENT = "Build on earlier work", "Make the environment"
BEFORE_THE_RUNS = (_BUILD_ON, _MAKE_ENVIRONMENT)  # steps that say nothing of the experiment


def sections_of(draft: ExperimentDraft, scan: ProjectScan, cluster: Cluster) -> PlanSections:
    way = "more is better" if draft.direction == "maximize" else "less is better"
    return PlanSections(
        title=draft.title,
        objective=draft.objective,
        compute_setup=_setup(scan, cluster),
        approach=tuple(_steps(draft, scan)),
        parameters=tuple(_parameters(draft)),
        metrics=Metrics(
            primary=PlannedMetric(name=draft.metric, why=f"decides; {way}"),
            secondary=tuple(PlannedMetric(name=name, why="must not get worse") for name in draft.guards),
        ),
        success_criteria=tuple(_criteria(draft)),
        risks=tuple(_risks(draft, scan)),
        estimated_effort=_effort(draft, cluster),
        workflow_improvements=("The generated workflow can be run again with other values in its grid.",),
    )


def _setup(scan: ProjectScan, cluster: Cluster) -> ComputeSetup:
    shared = cluster.type is ClusterType.LOCAL_GPU and cluster.gpuwrap is GpuwrapAdvice.ENABLED
    return ComputeSetup(
        cluster_type=cluster.type,
        gpu_count=0 if cluster.type is ClusterType.CPU_ONLY else cluster.gpu_count,
        gpuwrap=Gpuwrap.ENABLED if shared else Gpuwrap.DISABLED,
        environment=PlanEnvironment(scan.environment.word),
    )


def _steps(draft: ExperimentDraft, scan: ProjectScan) -> list[ApproachStep]:
    names = ", ".join(parameter.flag for parameter in draft.parameters)
    found: list[ApproachStep] = []
    if draft.builds_on:
        found.append(ApproachStep(title=_BUILD_ON, description="; ".join(draft.builds_on)))
    if scan.environment.create:
        found.append(ApproachStep(title=_MAKE_ENVIRONMENT, description=f"`{scan.environment.create}`"))
    fixed = "".join(f", {name} {write_value(value)}" for name, value in draft.fixed.items())
    found.append(
        ApproachStep(title="Run the grid", description=f"`{draft.script}` for each combination of {names}{fixed}")
    )
    found.append(
        ApproachStep(title="Summarise", description=f"mean and spread of {draft.metric} for each configuration")
    )
    found.append(ApproachStep(title="Choose", description=f"the best configuration by {draft.metric}"))
    if draft.baseline is not None:
        found.append(ApproachStep(title="Compare", description="the best configuration with the script as it is"))
    if len(draft.parameters) > 1:
        found.append(
            ApproachStep(title="Weigh", description=f"how much each of {names} matters, by the mean of its values")
        )
    return found


def _parameters(draft: ExperimentDraft) -> list[SweptParameter]:
    return [
        SweptParameter(name=p.flag, values=tuple(map(write_value, p.values)), rationale=p.rationale)
        for p in draft.parameters
    ]


def _criteria(draft: ExperimentDraft) -> list[Criterion]:
    found = [f"Every run ends and reports {draft.metric}"]
    if draft.baseline is not None:
        found.append(f"The best configuration is compared with the baseline by {draft.metric}")
    found += [f"{name} is not worse than the baseline's" for name in draft.guards]
    return [Criterion(text=text) for text in found]


def _risks(draft: ExperimentDraft, scan: ProjectScan) -> list[Risk]:
    found = [Risk(risk=words, mitigation="read its results first, or extend it instead") for words in draft.overlaps]
    found += [Risk(risk=note.rstrip("."), mitigation=LOOK_IN_REVIEW) for note in draft.notes]
    if len(draft.seeds) < 2:
        found.append(Risk(risk="one run a configuration cannot tell luck from effect", mitigation="add seeds"))
    else:
        found.append(Risk(risk="the noise hides the effect", mitigation="compare the spread over the seeds"))
    if scan.environment.create:
        words = "the environment is not made yet, so nothing was rehearsed in it"
        found.append(Risk(risk=words, mitigation="the first step makes it; if that fails, no run is started"))
    return found


def _effort(draft: ExperimentDraft, cluster: Cluster) -> Effort:
    grid = grid_of(draft)
    sizes = " × ".join(f"{len(p.values)} {p.flag}" for p in draft.parameters)
    seeds = f" × {len(draft.seeds)} seeds" if draft.seeds else ""
    apart = ", and the baseline" if grid.baseline_apart else ""
    return Effort(
        runs=f"{grid.size} ({sizes}{seeds}{apart})",
        time=f"not known before the first run; up to {cluster.at_a_time(0)} at a time",
        resources=f"{draft.gpus} GPU a run"
        if draft.gpus
        else "CPU"
        if not cluster.gpu_count or cluster.type is ClusterType.SLURM
        else "as the script takes",
    )
