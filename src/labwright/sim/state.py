"""The state file of the simulated driver and nvidia-smi. fake_nvml.c reads the same lines."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

STATE_VARIABLE = "LABWRIGHT_SIM_STATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    uuid: str
    bus: int
    name: str = "Simulated H100 80GB"
    memory_total_mb: int = 81920
    memory_used_mb: int = 0
    utilization: int = 0
    lost: bool = False
    processes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverState:
    cards: tuple[Card, ...] = ()
    init_code: int = 0  # what nvmlInit returns; 9 is "Driver Not Loaded"
    hang: bool = False
    driver_version: str = "580.00.01"

    def with_card(self, index: int, card: Card) -> DriverState:
        return replace(self, cards=(*self.cards[:index], card, *self.cards[index + 1 :]))


def read_state(path: Path) -> DriverState:
    state = DriverState()
    for line in path.read_text().splitlines():
        state = _read_line(state, line)
    return state


def write_state(path: Path, state: DriverState) -> None:
    """Write atomically: another process may be reading."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    aside.write_text("".join(f"{line}\n" for line in _lines(state)))
    aside.replace(path)


def _lines(state: DriverState) -> list[str]:
    lines = [f"init {state.init_code}", f"hang {int(state.hang)}", f"driver {state.driver_version}"]
    for index, card in enumerate(state.cards):
        numbers = f"{int(card.lost)} {card.bus} {card.memory_total_mb} {card.memory_used_mb} {card.utilization}"
        lines.append(f"card {index} {numbers} {card.uuid} {card.name}")
        lines += [f"process {index} {pid} {megabytes}" for pid, megabytes in card.processes]
    return lines


def _read_line(state: DriverState, line: str) -> DriverState:
    word, _, rest = line.partition(" ")
    if word == "init":
        return replace(state, init_code=int(rest))
    if word == "hang":
        return replace(state, hang=rest == "1")
    if word == "driver":
        return replace(state, driver_version=rest)
    if word == "card":
        return replace(state, cards=(*state.cards, _card(rest)))
    index, pid, megabytes = map(int, rest.split())
    card = state.cards[index]
    return state.with_card(index, replace(card, processes=(*card.processes, (pid, megabytes))))


def _card(rest: str) -> Card:
    _, lost, bus, total, used, utilization, uuid, name = rest.split(" ", 7)
    return Card(
        uuid=uuid,
        bus=int(bus),
        name=name,
        memory_total_mb=int(total),
        memory_used_mb=int(used),
        utilization=int(utilization),
        lost=lost == "1",
    )
