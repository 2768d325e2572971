"""Which run is the best, of all, of some or of a sweep; without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from labwright.agent.offline.reply import Ask, Json, Reply, Results

_RANKED = 5
_COMPARED = 3  # metrics, where none was named
_MACHINE = "system/"  # what the monitor samples
_PLACES = {"second": 2, "2nd": 2, "next": 2, "third": 3, "3rd": 3}
_WAYS = {"highest": "max", "largest": "max", "lowest": "min", "smallest": "min"}


def compare(match: re.Match[str], results: Results) -> Reply:
    names = [
        name for name in re.split(r"\s*(?:,|\b(?:and|with|to|against|vs|versus)\b\.?|\s)\s*", match["runs"]) if name
    ]
    names = [name.lstrip("@") for name in names]
    if found := [one for one in results if "ranking" in one]:
        return "\n\n".join(compared_in_words(one) for one in found)
    if not match["key"] and not results:
        return [Ask("get_metrics", {"run_id": name}) for name in names]
    keys = [match["key"]] if match["key"] else _in_common([one["keys"] for one in results])[:_COMPARED]
    return [Ask("compare_metrics", {"run_ids": names, "key": key}) for key in keys] or "They have no metric in common."


def _in_common(keys: Sequence[Sequence[str]]) -> list[str]:
    """Metrics of the script's own that all of them have; of the machine's only where there are no others."""
    shared = [key for key in keys[0] if all(key in one for one in keys)]
    return [key for key in shared if not key.startswith(_MACHINE)] or shared


def best_run(match: re.Match[str], results: Results) -> Reply:
    known = results[0]["metrics"] if results and "metrics" in results[0] else []
    if results and "best" in results[-1]:
        return _best_in_words(results[-1])
    key = match["key"] or (known[0] if len(known) == 1 else "")
    if not key and results:
        names = ", ".join(f"`{one}`" for one in known)
        return f"By which metric? Say `best run by METRIC`: {names}." if known else "No run has a metric yet."
    way = _WAYS.get(match["way"].lower())
    return [Ask("best_runs", {**({"key": key} if key else {}), **({"goal": way} if way else {})})]


def _best_in_words(found: Json) -> str:
    key, cited, (first, *others) = found["key"], f"[{found['evidence']}]", found["best"][:_RANKED]
    head = f"Best by {_way(found)}: {_as(first)}: last {key} {first['last']:.4g} {cited}."
    if others and others[0]["last"] == first["last"]:
        head = f"By {_way(found)}, {_as(first)} is one of several with {first['last']:.4g} {cited}."
    lines = [f"- {_as(run)}: last {key} {run['last']:.4g} {cited}" for run in others]
    return "\n".join([head, *(["Then:", *lines] if lines else []), f"{found['runs_with_it']} runs have it {cited}."])


def next_best(match: re.Match[str], results: Results) -> Reply:
    if not results or "best" not in results[-1]:
        return best_run(match, results)
    found, word, cited = results[-1], match["way"].lower(), f"[{results[-1]['evidence']}]"
    if len(found["best"]) < _PLACES[word]:
        return f"{found['runs_with_it']} runs have {found['key']} {cited}, so there is none."
    run = found["best"][_PLACES[word] - 1]
    return f"{word.capitalize()} by {_way(found)}: {_as(run)}: last {found['key']} {run['last']:.4g} {cited}."


def _way(found: Json) -> str:
    return f"{found['key']} ({'lower' if found['goal'] == 'min' else 'higher'} is better)"


def _as(run: Json) -> str:
    return f"{run['run_id']} `{run['name']}`"


def compared_in_words(found: Json) -> str:
    key, names = found["key"], {run["run_id"]: run["name"] for run in found["runs"]}
    lines = [
        f"- {run['run_id']} `{run['name']}`: last {key} {run['last']:.4g} [{run['evidence']}]" for run in found["runs"]
    ]
    ranking, best = found["ranking"], found["ranking"]["order"][0]
    head = f"Best by {_way(found)}: {best} `{names[best]}` [{ranking['evidence']}]."
    if ranking["place_1"] == ranking["place_2"]:
        head = f"By {_way(found)}, {best} `{names[best]}` shares the first place [{ranking['evidence']}]."
    gaps = [
        f"- {one['second'][0]} differs from it by {one['difference']:.4g}"
        f"{' (' + format(one['percent'], '.3g') + '%)' if 'percent' in one else ''} [{one['evidence']}]"
        for one in found["differences"]
        if len(one["first"]) == 1
    ]
    return "\n".join([head, *lines, *gaps])


def best(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("get_sweep_results", {"sweep_id": match["sweep"].lstrip("@"), "limit": 3})]
    found = results[0]
    if not found.get("configurations"):
        return f"{found['id']} is {found['status']}. {found.get('note', 'No run of it has a value yet.')}"
    first = found["configurations"][0]
    params = ", ".join(f"{name}={value}" for name, value in first["params"].items())
    spread = f" ± {first['std']:.3g}" if first["std"] is not None else ""
    key = found["metric"]["key"]
    head = f"Best of {found['id']}: {params}, mean {key} {first['mean']:.4g}{spread} over {first['n']} runs"
    return f"{head} [{first['evidence']}]; for example {first['run_ids'][0]}."
