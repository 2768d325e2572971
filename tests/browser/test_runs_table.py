"""The runs table: columns, order, groups, saved views, bulk actions."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.sample import Sample
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until


def test_chosen_parameters_and_metrics_are_columns(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs?sweep={sample.sweep}")
    expect(page.get_by_role("columnheader", name="train/loss")).to_be_visible()
    expect(page.locator(".sparkline").first).to_be_visible()
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Find a column").fill("wid")
    page.get_by_role("checkbox", name="width", exact=True).check()
    expect(page.get_by_role("columnheader", name="width")).to_be_visible()
    expect(page.locator("[data-key=width]").first).to_have_text(re.compile("32|64"))
    page.reload()
    expect(page.get_by_role("columnheader", name="width")).to_be_visible()


def test_sorting_by_a_metric_puts_the_best_first(visitor: Visitor, lab: LiveServer, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs?sweep={sample.sweep}")
    page.get_by_role("button", name="train/loss", exact=True).click()
    expect(page.get_by_role("columnheader", name="train/loss")).to_have_attribute("aria-sort", "ascending")
    by_loss = sorted(lab.get(f"/runs?sweep_id={sample.sweep}"), key=lambda run: run["summary"]["train/loss"]["last"])
    expect(page.locator(".row .cell-name a")).to_have_text([run["name"] for run in by_loss])
    page.get_by_role("button", name="train/loss", exact=True).click()
    expect(page.locator(".row .cell-name a").first).to_have_text(by_loss[-1]["name"])


def test_a_new_order_or_filter_scrolls_to_the_top(visitor: Visitor, sample: Sample) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 260})
    page = visitor.sign_in(f"#/runs?sweep={sample.sweep}")
    expect(page.locator(".row .cell-name a").first).to_be_visible()
    table = page.get_by_role("region", name="Runs table")
    for choose in (
        lambda: page.get_by_role("button", name="Name", exact=True).click(),
        lambda: page.get_by_label("Filter runs").fill("seed"),
    ):
        table.evaluate("(box) => { box.scrollTop = box.scrollHeight }")
        assert table.evaluate("(box) => box.scrollTop") > 0
        choose()
        wait_until(lambda: table.evaluate("(box) => box.scrollTop") == 0, "the first row to be seen")


def test_a_date_is_not_cut_off(visitor: Visitor, sample: Sample) -> None:
    visitor.page.clock.install(time=datetime.datetime.now() + datetime.timedelta(days=100))
    page = visitor.sign_in(f"#/runs?sweep={sample.sweep}")
    created = page.locator(".cell-created").first
    expect(created).to_have_text(re.compile(r"\b20\d\d$"))
    assert created.evaluate("one => one.scrollWidth - one.clientWidth") <= 0, f"{created.inner_text()} is cut off"


def test_groups_without_the_seed_show_mean_and_deviation(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs?sweep={sample.sweep}")
    page.get_by_role("button", name="Group").click()
    page.get_by_role("button", name="Configuration").click()
    expect(page.locator(".row-group")).to_have_count(4)
    expect(page.locator(".row-group").first).to_contain_text("±")
    expect(page.locator(".row:not(.row-group) .cell-name a").first).to_have_text(re.compile(r"^seed=\d+$"))
    page.locator(".row-group").first.get_by_role("button").click()
    expect(page.locator(".row:not(.row-group):not(.row-head)")).to_have_count(6)
    for spread in page.locator(".row-group .cell-metric[data-key]").all():
        assert spread.evaluate("one => one.scrollWidth - one.clientWidth") <= 0, f"{spread.inner_text()} is cut off"
    page.get_by_role("button", name="learning rate and width").click()
    expect(page).not_to_have_url(re.compile("sweep="))


def test_equal_values_of_a_group_do_not_deviate(visitor: Visitor) -> None:
    page = visitor.sign_in("#/runs")
    spread = page.evaluate(
        """async () => {
            const { spreadOf } = await import("/dashboard/work/run_columns.js");
            return spreadOf([0.1, 0.1, 0.1].map((last) => ({ tags: [], summary: { loss: { last } } })), "m:loss");
        }"""
    )
    assert spread == {"mean": 0.1, "std": 0, "n": 3}


def test_runs_without_parameters_are_grouped_by_their_commands(visitor: Visitor, lab: LiveServer) -> None:
    commands = ("true --lr 0.1 --seed 1", "true --lr 0.1 --seed 2", "true --lr 0.01 --seed 1")
    for command in commands:
        lab.submit(command, name=command, tags=["by-hand"])
    page = visitor.sign_in("#/runs?tag=by-hand&group=config")
    expect(page.locator(".row-group")).to_have_count(2)
    expect(page.locator(".row-group").filter(has_text="--lr 0.1 ")).to_have_count(1)
    expect(page.locator(".row-group").filter(has_text="--lr 0.01 ")).to_have_count(1)


def test_differing_parameters_come_first_in_group_heads(visitor: Visitor, lab: LiveServer) -> None:
    """Long group heads are cut off at their end."""
    for rate in (0.1, 0.2):
        lab.submit(f"true --lr {rate}", tags=["alike"], params={"dataset": "a-rather-long-name", "lr": rate})
    page = visitor.sign_in("#/runs?tag=alike&group=config")
    expect(page.locator(".row-group .group-toggle")).to_have_text(
        [re.compile("^lr=0.2 dataset="), re.compile("^lr=0.1 dataset=")]
    )


def test_the_mean_of_a_group_leaves_rehearsals_out(visitor: Visitor, lab: LiveServer) -> None:
    for value, tags in ((1.0, []), (3.0, []), (100.0, ["rehearsal"])):
        run = lab.submit("true --rehearsed", name=f"scored {value}", tags=["scored", *tags])
        lab.call("POST", f"/runs/{run['id']}/metrics", {"points": [{"key": "score", "step": 0, "value": value}]})
        wait_until(lambda one=run: lab.run(one["id"])["summary"].get("score"), "the score")
    page = visitor.sign_in("#/runs?tag=scored&group=config")
    expect(page.locator(".row-group")).to_have_count(1)
    expect(page.locator(".row-group .cell-metric").first).to_have_text(re.compile(r"^2\s*±"))


@pytest.mark.parametrize("name", ["by loss", "../a?b#c %2e <script>alert(1)</script>"])
def test_a_saved_view_is_available_in_another_browser(
    name: str, lab: LiveServer, make_visitor: Callable[..., Visitor], sample: Sample
) -> None:
    here, elsewhere = make_visitor(lab), make_visitor(lab)
    page = here.sign_in(f"#/runs?sweep={sample.sweep}&group=config&sort=m:train/loss")
    page.get_by_role("button", name="Views").click()
    page.get_by_label("View name").fill(name)
    page.get_by_role("button", name="Save view").click()
    expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()
    page = elsewhere.sign_in("#/runs")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator(".row-group")).to_have_count(4)
    page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("button", name=f"Delete view {name}").click()
    expect(here.page.get_by_role("button", name="Views")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(here.page.get_by_role("button", name=name, exact=True)).to_be_visible()
    assert lab.call("DELETE", f"/views?name={quote(name)}").status == 204


def test_replacing_a_view_asks_first(visitor: Visitor, lab: LiveServer) -> None:
    lab.call("PUT", "/views", {"name": "the table of the paper", "query": "q=kept"})
    page = visitor.sign_in("#/runs?q=other")
    for answer, query in (("Cancel", "q=kept"), ("Replace view", "q=other")):
        page.get_by_role("button", name="Views").click()
        page.get_by_label("View name").fill("the table of the paper")
        page.get_by_role("button", name="Save view").click()
        page.get_by_role("dialog").get_by_role("button", name=answer).click()
        expect(page.get_by_role("button", name="the table of the paper")).to_have_count(int(query == "q=other"))
        assert {"name": "the table of the paper", "query": query} in lab.get("/views")
    lab.call("DELETE", "/views?name=the%20table%20of%20the%20paper")


def test_selected_runs_are_tagged_compared_stopped_rerun_and_archived(visitor: Visitor, lab: LiveServer) -> None:
    ended = lab.wait_for_end(lab.submit("true", name="many-ended")["id"])
    going = lab.submit("sleep 300", name="many-going")
    lab.wait_for_status(going["id"], "running")
    page = visitor.sign_in("#/runs?q=many-")
    page.get_by_role("checkbox", name="Select all runs shown").check()
    bar = page.get_by_role("toolbar", name="Selected runs")
    expect(bar).to_contain_text("2 runs")
    bar.get_by_role("button", name="Tag").click()
    bar.get_by_role("textbox", name="Tag").fill("together")
    bar.get_by_role("button", name="Add tag").click()
    expect(page.locator(".row .tag", has_text="together")).to_have_count(2)
    page.keyboard.press("Escape")
    bar.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop runs").click()
    assert lab.wait_for_end(going["id"])["status"] == "stopped"
    page.get_by_role("checkbox", name="Select many-going").uncheck()
    bar.get_by_role("button", name="Rerun").click()
    expect(page.get_by_role("status")).to_contain_text("1 run started again")
    assert [run["name"] for run in lab.all_runs() if run["parent_run_id"] == ended["id"]] == ["many-ended"]
    bar.get_by_role("button", name="Archive").click()
    expect(bar).to_have_count(0)
    assert lab.run(ended["id"])["archived"] and lab.run(ended["id"])["tags"] == ["together"]
    visitor.open("#/runs?tag=together")
    page.get_by_role("checkbox", name="Select all runs shown").check()
    bar.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name=re.compile(r"Compare \d runs"))).to_be_visible()


def test_selected_runs_are_compared_with_keys_alone(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs?sweep={sample.sweep}")
    expect(page.locator(".row .cell-name a").first).to_be_visible()
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("2 runs")
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Compare")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()


def test_keys_continue_from_the_clicked_row(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs?sweep={sample.sweep}")
    rows = page.locator(".row:not(.row-head)")
    rows.nth(2).get_by_role("checkbox").click()
    expect(rows.nth(2).get_by_role("checkbox")).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(3).get_by_role("link")).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("2 runs")
    rows.nth(0).get_by_role("checkbox").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("3 runs")


def test_toasts_do_not_cover_the_selection_bar(visitor: Visitor, lab: LiveServer) -> None:
    lab.wait_for_end(lab.submit("true", name="one-to-tag")["id"])
    page = visitor.sign_in("#/runs?q=one-to-tag")
    page.get_by_role("checkbox", name="Select one-to-tag").check()
    bar = page.get_by_role("toolbar", name="Selected runs")
    bar.get_by_role("button", name="Rerun").click()
    expect(page.locator(".toast")).to_be_visible()
    visitor.picture("selection-toast")
    toast, verbs = page.locator(".toast").bounding_box(), bar.bounding_box()
    assert toast and verbs and toast["y"] + toast["height"] <= verbs["y"]


def test_a_viewer_sees_no_forbidden_actions(visitor: Visitor, lab: LiveServer, sample: Sample) -> None:
    from labwright.domain.actor import Scope
    from labwright.tokens import mint

    page = visitor.page
    page.goto(f"{lab.url}/#token={mint(lab.token, Scope.VIEWER, 'guest', 600.0)}")
    page.get_by_role("navigation").wait_for()
    visitor.open(f"#/runs/{sample.running}")
    expect(page.get_by_role("heading", name="resnet18 warm-up")).to_be_visible()
    for name in ("Stop run", "Rerun", "More"):
        expect(page.locator("main").get_by_role("button", name=name)).to_have_count(0)
    visitor.open("#/runs")
    page.get_by_role("button", name="Views").click()
    expect(page.get_by_role("group", name="Views")).to_be_visible()
    for name in ("Save view", "New run"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    visitor.open("#/settings?tab=browser")
    expect(page.get_by_text("scope viewer")).to_be_visible()


def test_reasons_show_run_names_instead_of_ids(visitor: Visitor, lab: LiveServer) -> None:
    first = lab.post("/runs", {"command": "true", "name": "not begun yet"})[
        "id"
    ]  # status ready: on no list of these pages
    for index in range(3):
        lab.submit("true", name=f"follower-{index}", after=[first])
    asked: list[str] = []
    by_ids = re.compile(rf"/runs\?ids=.*{first}")
    visitor.page.on("request", lambda request: asked.append(request.url) if by_ids.search(request.url) else None)
    page = visitor.sign_in("#/runs?q=follower-")
    expect(page.get_by_role("row").filter(has_text="waits for not begun yet")).to_have_count(3)
    assert len(asked) == 1, "one question for all of them"
    page.reload()
    visitor.open("#/cluster")
    queue = page.get_by_label("Queue").get_by_role("listitem").filter(has_text="follower-")
    expect(queue.filter(has_text="waits for not begun yet")).to_have_count(3)
    lab.post(f"/runs/{first}/stop")
