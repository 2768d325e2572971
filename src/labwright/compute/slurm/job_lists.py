"""Many jobs in few words: Slurm takes the tasks of an array as one order, however many they are."""

from __future__ import annotations

from collections.abc import Iterable


def gathered(job_ids: Iterable[str]) -> list[str]:
    """The tasks of each array together: `7_[0-998,1000]`."""
    arrays: dict[str, list[int]] = {}
    words = []
    for job_id in job_ids:
        array, _, task = job_id.partition("_")
        if task.isdecimal():
            arrays.setdefault(array, []).append(int(task))
        else:
            words.append(job_id)
    return [*words, *(f"{array}_{_tasks(found)}" for array, found in arrays.items())]


def _tasks(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return parts[0] if len(numbers) == 1 else f"[{','.join(parts)}]"
