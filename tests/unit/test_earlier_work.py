"""What a new plan learns about earlier work, from the server's records."""

from __future__ import annotations

from pathlib import Path

from labwright.compute.lab import Lab
from labwright.domain.plan import Plan, PlanVersion
from labwright.domain.run import Run, RunStatus
from labwright.domain.sweep import Sweep
from labwright.planning.earlier_work import earlier_work
from labwright.planning.ir.drafts import ExperimentDraft, PlannedParameter
from labwright.planning.scan import EntryPoint, ProjectScan
from labwright.server.opening import open_lab, prepare_state
from labwright.settings import Settings
from labwright.store import plans, runs, sweeps
from tests.unit.plan_texts import GOOD

MADE = {"created_at": "2026-01-01T00:00:00Z", "created_by": "ada"}
DRAFT = ExperimentDraft(
    title="t", objective="o", script="train.py", metric="loss", direction="minimize",
    parameters=(PlannedParameter(flag="optimizer.lr", values=(1,), rationale="r"),),
)  # fmt: skip


def run(run_id: str, **facts: object) -> Run:
    common = {"name": run_id, "command": "python train.py", "workdir": "/", "status": RunStatus.FINISHED}
    return Run(id=run_id, summary={"loss": {"last": 0.5}}, **{**common, **MADE, **facts})  # type: ignore[arg-type]


def fill(lab: Lab) -> None:
    title = "Old → **Mitigation**: rm"
    with lab.db.transaction() as tx:
        for plan_id in ("plan-old", "plan-self"):
            version = PlanVersion(version=1, title=title, goal="", raw_markdown=GOOD, **MADE)
            plans.insert(tx, Plan(id=plan_id, title=title, goal="", updated_at="", **MADE), version, "ada")
        runs.insert(tx, run("run-1"), "ada")
        runs.insert(tx, run("run-2", tags=("rehearsal",)), "ada")
        runs.insert(tx, run("run-3", status=RunStatus.FAILED), "ada")
        command, parameters = "python train.py optimizer.lr={optimizer_lr}", {"optimizer_lr": [1]}
        for sweep_id, status in (("sw-1", RunStatus.FINISHED), ("sw-2", RunStatus.STOPPED)):
            sweeps.insert(tx, Sweep(id=sweep_id, name="s", base_command=command, parameters=parameters, **MADE), "ada")
            runs.insert(tx, run(f"run-of-{sweep_id}", sweep_id=sweep_id, status=status), "ada")


def test_earlier_work_excludes_rehearsals_and_the_plan_itself(tmp_path: Path) -> None:
    lab = open_lab(prepare_state(tmp_path), Settings(lease_dir=str(tmp_path / "leases")), "http://127.0.0.1:1")
    try:
        fill(lab)
        scan = ProjectScan(folder=str(tmp_path), entry_points=(EntryPoint(path="train.py"),))
        found = earlier_work(lab, scan, "plan-self")
    finally:
        lab.db.close()
    assert [plan.id for plan in found.plans] == ["plan-old"] and found.plans[0].parameters
    assert [earlier.id for earlier in found.runs] == ["run-1"]
    cited = found.cited(DRAFT, DRAFT.script)
    assert cited.builds_on == ("sweep @sw-1 (optimizer.lr; 1 finished runs)", "run @run-1 (loss 0.5)")
    own = DRAFT.model_copy(update={"parameters": (DRAFT.parameters[0].model_copy(update={"flag": "lr"}),)})
    overlaps = found.cited(own, own.script).overlaps
    assert overlaps == ("plan @plan-old (Old Mitigation : rm; draft) varies lr too",)
