"""The plan document: read as values, written back exactly, and each deviation reported with its line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labwright.domain.cluster import ClusterType
from labwright.domain.plan_document.document import (
    ApproachStep,
    ComputeSetup,
    Criterion,
    Effort,
    Gpuwrap,
    Header,
    Metrics,
    PlanEnvironment,
    PlannedMetric,
    PlanSections,
    Risk,
    SweptParameter,
    compose,
)
from labwright.domain.plan_document.outline import MOST_FAULTS
from labwright.domain.plan_document.reader import count_sentences, read, split_values, why_not_concrete
from tests.unit.plan_texts import GOOD


def line_of(text: str, words: str) -> int:
    return text[: text.index(words)].count("\n") + 1


def faults(text: str) -> list[tuple[int, str]]:
    document = read(text)
    assert document.write() == text
    assert all(fault.hint and fault.message and 1 <= fault.line <= text.count("\n") + 1 for fault in document.faults)
    return [(fault.line, fault.message) for fault in document.faults]


def test_plan_in_the_exact_format_has_no_fault() -> None:
    assert faults(GOOD) == []
    assert read(GOOD).valid


def test_every_section_is_read_as_values() -> None:
    sections = read(GOOD).sections
    assert sections.title == "Learning rate of the small transformer"
    assert sections.objective.startswith("Find the learning rate")
    assert sections.compute_setup == ComputeSetup(
        cluster_type=ClusterType.LOCAL_GPU, gpu_count=2, gpuwrap=Gpuwrap.ENABLED, environment=PlanEnvironment.VENV
    )
    assert [step.title for step in sections.approach] == ["Baseline", "Sweep"]
    assert "```bash\n### Objective\nsource" in sections.approach[0].description
    assert [parameter.values for parameter in sections.parameters] == [
        ("1e-4", "3e-4", "1e-3"),
        ("cosine", "a|b", "(1, 2)"),
    ]
    assert sections.parameters[0].name == "lr"
    assert sections.metrics.primary == PlannedMetric(name="val_acc", why="what the report compares")
    assert [criterion.met for criterion in sections.success_criteria] == [False, True]
    assert sections.risks[0] == Risk(risk="the card is taken", mitigation="gpuwrap waits")
    assert sections.estimated_effort == Effort(runs="12 (4 configurations × 3 seeds)", time="2 h", resources="2 GPUs")
    assert sections.workflow_improvements == ("Keep the sweep's command as a script",)


def test_plan_without_a_sweep_has_no_table() -> None:
    start, end = GOOD.index(Header.PARAMETERS), GOOD.index(Header.METRICS)
    text = GOOD[:start] + GOOD[end:]
    assert faults(text) == []
    assert read(text).sections.parameters == ()


@pytest.mark.parametrize(
    "text", [GOOD.replace("\n", "\r\n"), GOOD.rstrip("\n"), GOOD + "\n\n", GOOD.replace("### Metrics", "### Metrics  ")]
)
def test_line_endings_and_trailing_blanks_are_free(text: str) -> None:
    assert faults(text) == []
    assert read(text).sections == read(GOOD).sections


BROKEN = {
    "words before": ("## 📋 Plan", "Here is it:\n## 📋 Plan", "Here is", "before"),
    "a blank line before": ("## 📋 Plan", "\n## 📋 Plan", "\n", "before"),
    "a byte order mark": ("## 📋 Plan", "\ufeff## 📋 Plan", "\ufeff", "U+FEFF"),
    "no emoji": ("## 📋 Plan:", "## Plan:", "## Plan", "exact format"),
    "another emoji": ("## 📋 Plan:", "## 📝 Plan:", "## 📝", "exact format"),
    "a variation selector": ("### 💡 W", "### 💡\ufe0f W", "### 💡", "exact format"),
    "no title": ("Plan: Learning rate of the small transformer", "Plan:", "## 📋", "empty"),
    "a title of level one": ("## 📋 Plan", "# 📋 Plan", "# 📋", "exact format"),
    "the template's title": ("Plan: Learning rate of the small transformer", "Plan: <title>", "## 📋", "template"),
    "words below the title": ("\n\n### Objective", "\nfor you\n### Objective", "for you", "between"),
    "a header of another level": ("### Metrics", "## Metrics", "## Metrics", "exact format"),
    "a header in small letters": ("### Success Criteria", "### Success criteria", "### Success", "exact format"),
    "a header with and": ("Risks & Mitigations", "Risks and Mitigations", "### Risks", "exact format"),
    "an indented header": ("### Metrics", " ### Metrics", " ### Metrics", "exact format"),
    "an unknown section": ("### Metrics", "### Budget\n- much\n\n### Metrics", "### Budget", "not a header"),
    "a header inside of a section": ("2. **Sweep**", "#### Then\n2. **Sweep**", "#### Then", "not a header"),
    "a section twice": ("### Metrics", "### Objective\nAgain.\n\n### Metrics", "### Objective\nAgain", "again"),
    "a second title": ("### Metrics", "## 📋 Plan: two\n### Metrics", "## 📋 Plan: two", "second title"),
    "a missing section": ("### Estimated Effort", "", "### 💡", "`### Estimated Effort` is missing"),
    "no objective": (GOOD[GOOD.index("Find") : GOOD.index("\n\n### Compute")], "", "### Objective", "empty"),
    "a long objective": ("Three seeds", "One. Two. Three seeds", "### Objective", "4 sentences"),
    "an objective as a list": ("Find the", "- Find the", "- Find", "plain text"),
    "another cluster type": ("local_gpu", "kubernetes", "- Cluster", "cannot be 'kubernetes'"),
    "a cluster type in capitals": ("local_gpu", "Local_GPU", "- Cluster", "cannot be"),
    "a choice that was not made": ("local_gpu", "local_gpu / slurm", "- Cluster", "cannot be"),
    "a count in words": ("GPU count: 2", "GPU count: two", "- GPU", "not a number"),
    "a negative count": ("GPU count: 2", "GPU count: -1", "- GPU", "not a number"),
    "GPUs without a GPU": ("local_gpu", "cpu_only", "- GPU", "no GPUs"),
    "gpuwrap on Slurm": ("local_gpu", "slurm", "- gpuwrap", "no effect"),
    "gpuwrap optional": ("gpuwrap: enabled", "gpuwrap: optional", "- gpuwrap", "cannot be"),
    "another environment": ("Environment: venv", "Environment: docker", "- Environment", "cannot be"),
    "a bold label": ("- GPU count:", "- **GPU count**:", "- **GPU", "exact format"),
    "a label twice": ("- GPU count: 2", "- GPU count: 2\n- GPU count: 3", "- GPU count: 3", "again"),
    "labels out of order": ("- GPU count: 2", "- gpuwrap: enabled\n- GPU count: 2", "- Cluster", "out of order"),
    "a label that is missing": ("- Environment: venv\n", "", "### Compute", "Environment is missing"),
    "an unknown label": ("- Environment: venv", "- Environment: venv\n- Disk: 1 TB", "- Disk", "does not belong"),
    "a star for a dash": ("- Environment", "* Environment", "* Environment", "starts with `*`"),
    "steps as a list": ("2. **Sweep**", "- **Sweep**", "- **Sweep**", "not part"),
    "a wrong number": ("2. **Sweep**", "3. **Sweep**", "3. **Sweep**", "has the number 3"),
    "a step without a title": ("2. **Sweep** — Create", "2. Create", "2. Create", "exact format"),
    "a hyphen for the dash": ("**Sweep** —", "**Sweep** -", "2. **Sweep**", "exact format"),
    "a step without words": ("— Create a sweep and one run a configuration through the API.", "—", "2. **", "exact"),
    "another column": ("| Rationale |\n", "| Why |\n", "| Parameter", "table"),
    "a fourth cell": ("| one below", "| x | one below", "| `lr`", "4 cells"),
    "a pipe in code": ("a\\|b", "a|b", "| schedule", "4 cells"),
    "a table without a rule": ("|-----------|:------:|-----------|\n", "", "| `lr`", "rule"),
    "a table without rows": (GOOD[GOOD.index("| `lr`") : GOOD.index("\n\n### Metrics")], "", "| Parameter", "table"),
    "a range": ("1e-4, 3e-4, 1e-3", "1e-4 to 1e-1", "| `lr`", "is a range"),
    "a range with a dash": ("1e-4, 3e-4, 1e-3", "16–64", "| `lr`", "is a range"),
    "a range in words": ("1e-4, 3e-4, 1e-3", "between 1 and 2", "| `lr`", "is a range"),
    "an interval": ("1e-4, 3e-4, 1e-3", "[1e-4, 1e-1]", "| `lr`", "range or two values"),
    "and so on": ("1e-4, 3e-4, 1e-3", "1e-4, 1e-3, ...", "| `lr`", "not a concrete value"),
    "no values": ("1e-4, 3e-4, 1e-3", "", "| `lr`", "no Values"),
    "a value twice": ("1e-4, 3e-4, 1e-3", "1e-4, 1e-4", "| `lr`", "twice"),
    "a parameter twice": ("| schedule", "| lr", "| lr", "again"),
    "no primary metric": ("**Primary**", "**Secondary**", "### Metrics", "no primary"),
    "two primary metrics": ("**Secondary**", "**Primary**", "- **Primary**: train_loss", "second primary"),
    "a metric without a reason": (" — what the report compares", "", "- **Primary**", "exact format"),
    "a metric of no kind": ("**Secondary**: train", "train", "- train", "neither"),
    "a criterion without a box": ("- [x] Every", "- Every", "- Every", "no box"),
    "a criterion without words": ("- [x] Every run has ended", "- [x]", "- [x]", "no box or no text"),
    "a risk without a mitigation": (" → **Mitigation**: gpuwrap waits", "", "- **Risk**: the card", "exact format"),
    "another arrow": ("taken →", "taken ->", "- **Risk**: the card", "exact format"),
    "no number of runs": ("12 (4 configurations × 3 seeds)", "a few", "- **Runs**", "not contain a number"),
    "effort that is missing": ("- **Time**: 2 h\n", "", "### Estimated", "Time is missing"),
    "no improvement": ("- Keep the sweep's command as a script\n", "", "### 💡", "no entry"),
    "text between the entries": ("- **Time**: 2 h", "about\n- **Time**: 2 h", "about\n", "not part"),
    "a fence without an end": ("   ```\n2.", "2.", "   ```bash", "has no end"),
    "a NUL": ("2 GPUs", "2\x00 GPUs", "- **Resources", "U+0000"),
    "text in another order": ("2 GPUs", "\u202e2 GPUs", "- **Resources", "U+202E"),
    "a comment": ("- **Time**: 2 h", "- **Time**: 2 h <!-- or 90 -->", "- **Time", "hides text"),
    "an escape sequence": ("2 GPUs", "\x1b[2J", "- **Resources", "U+001B"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_deviation_from_the_format_is_reported_with_its_line(name: str) -> None:
    old, new, place, words = BROKEN[name]
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    assert (line_of(text, place), words) in [(line, words) for line, message in faults(text) if words in message]


def test_misplaced_section_is_reported_where_it_is() -> None:
    start, end = GOOD.index(Header.METRICS), GOOD.index(Header.SUCCESS_CRITERIA)
    text = GOOD[:start] + GOOD[end:] + "\n" + GOOD[start:end]
    assert [fault[1] for fault in faults(text)] == ["`### Metrics` comes after `### 💡 Workflow Improvements`."]
    assert read(text).sections == read(GOOD).sections


def test_template_itself_is_not_a_plan() -> None:
    template = "## 📋 Plan: <concise plan title> ### Objective <1-2 sentence summary> ### Compute Setup"
    assert len(faults(template)) >= 8


def test_composed_document_reads_back_as_the_same_values() -> None:
    again = read(compose(read(GOOD).sections))
    assert again.faults == ()
    assert again.sections == read(GOOD).sections


word = st.text(st.characters(categories=("L", "N"), include_characters="%+/=~é"), min_size=1, max_size=8).map(
    lambda text: f"w{text}"
)
phrase = st.lists(word, min_size=1, max_size=6).map(" ".join)
passage = st.lists(phrase, min_size=1, max_size=3).map("\n".join)
setups = st.builds(
    ComputeSetup,
    cluster_type=st.just(ClusterType.LOCAL_GPU),
    gpu_count=st.integers(0, 99),
    gpuwrap=st.sampled_from(Gpuwrap),
    environment=st.sampled_from(PlanEnvironment),
)
metric = st.builds(PlannedMetric, name=word, why=passage)
documents = st.builds(
    PlanSections,
    title=phrase,
    objective=phrase,
    compute_setup=setups,
    approach=st.lists(st.builds(ApproachStep, title=phrase, description=passage), min_size=1, max_size=4).map(tuple),
    parameters=st.lists(
        st.builds(
            SweptParameter,
            name=word,
            values=st.lists(word | st.just("a|b") | st.just("(1, 2)"), min_size=1, max_size=4, unique=True).map(tuple),
            rationale=phrase,
        ),
        max_size=3,
        unique_by=lambda parameter: parameter.name,
    ).map(tuple),
    metrics=st.builds(Metrics, primary=metric, secondary=st.lists(metric, max_size=3).map(tuple)),
    success_criteria=st.lists(st.builds(Criterion, text=passage, met=st.booleans()), min_size=1, max_size=3).map(tuple),
    risks=st.lists(st.builds(Risk, risk=passage, mitigation=passage), min_size=1, max_size=3).map(tuple),
    estimated_effort=st.builds(Effort, runs=st.integers(1, 999).map(str), time=phrase, resources=phrase),
    workflow_improvements=st.lists(passage, min_size=1, max_size=3).map(tuple),
)


@given(documents)
def test_values_survive_writing_and_reading(sections: PlanSections) -> None:
    document = read(compose(sections))
    assert document.faults == ()
    assert document.sections == sections


pieces = st.sampled_from(
    [*GOOD.splitlines(keepends=True), "```\n", "~~~~\n", "|", "\\|", "\r", "\x00", "\u202e", "#", "\n"]
)


@given(st.lists(pieces | st.text(max_size=20), max_size=60).map("".join))
def test_any_text_is_read_without_an_error_and_written_back_exactly(text: str) -> None:
    faults(text)


SOME = 30_000  # quadratic time would take minutes
LONG = {
    "newlines": "\n",
    "headers": "### Objective\n",
    "unknown headers": "### x\n",
    "dots": ".",
    "digits": "1",
    "pipes": "|",
    "escaped pipes": "\\|",
    "fences": "```\n",
    "longer fences": "`",
    "stars": "*",
    "arrows": "→ ",
    "bullets": "- **Risk**: a\n",
    "brackets": "[",
    "NULs": "\0",
    "hashes": "#",
    "blanks": " ",
    "comments": "<!--\n",
    "rows": "| a | 1 to 2 | c |\n",
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("section", ["", *Header])
def test_long_text_takes_linear_time(name: str, section: str) -> None:
    head = f"{GOOD[: GOOD.index(section)]}{section}\n" if section else ""
    before = time.process_time()
    text = head + LONG[name] * (SOME // len(LONG[name]))
    assert len(read(text).faults) <= MOST_FAULTS + 1
    assert time.process_time() - before < 1.0


def test_far_too_long_text_is_kept_and_reported_at_once() -> None:
    text = GOOD + "x\n" * 2_500_000
    before = time.process_time()
    document = read(text)
    assert [fault.line for fault in document.faults] == [1]
    assert document.write() == text
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("One", 1),
        ("One. Two!", 2),
        ("With 0.5 of train.py, e.g. v2.0 vs. v1. Then more", 2),
        ("See fig. 3 of the paper.", 1),
        ("Is it so? Yes. No.", 3),
        ("**Bold.** Next.", 2),
        ("一つ。二つ。", 2),
    ],
)
def test_sentences_are_counted_as_people_do(text: str, count: int) -> None:
    assert count_sentences(text) == count


@pytest.mark.parametrize(
    "value", ["1e-4", "-1", "resnet-18", "true", "(16, 32)", "a to b", "adam", "0.1", "2e-5", "bf16"]
)
def test_concrete_values_are_accepted(value: str) -> None:
    assert why_not_concrete(value) == ""


@pytest.mark.parametrize(
    "value",
    [
        "1-10",
        "1e-4-1e-1",
        "0.1..0.9",
        "1 … 5",
        "1 to 10 (log)",
        "uniform(0, 1)",
        "range(3)",
        "> 3",
        "TBD",
        "",
        "<x>",
        "2, …",
    ],
)
def test_vague_values_are_refused(value: str) -> None:
    assert all(why_not_concrete(part) for part in split_values(value)[-1:])
