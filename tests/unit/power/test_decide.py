"""What is done with a machine: single cases, and random histories that all end with belief and truth the same."""

from __future__ import annotations

import dataclasses
import random

import pytest

from ansible.module_utils.slurmstead.power import decide
from ansible.module_utils.slurmstead.power.decide import Act, Memory, Seen
from ansible.module_utils.slurmstead.power.node import Node
from ansible.module_utils.slurmstead.workers.reasons import FORGOTTEN, OPERATIONS

TIMEOUT = 600.0


def node(*flags: str, failed_at: float = 0.0) -> Node:
    return Node(frozenset(flags), failed_at=failed_at)


ASLEEP, IDLE = node("IDLE", "POWERED_DOWN"), node("IDLE")
WAKING, UNLIMITED = node("MIXED", "POWERING_UP", "NOT_RESPONDING"), node("MIXED", "POWERING_UP")
HALF = Node.read({"State": "DOWN+POWERED_DOWN", "Reason": FORGOTTEN})
MEMTEST = Node.read({"State": "DOWN+POWERED_DOWN", "Reason": "memtest", "ReasonSetByUser": "root"})
SILENT = Node.read({"State": "DOWN+NOT_RESPONDING", "Reason": "Not responding", "ReasonSetByUser": "slurm"})
SILENT_ASLEEP = Node.read({"State": "DOWN+POWERED_DOWN", "Reason": "Not responding", "ReasonSetByUser": "slurm"})
ENDING = node("IDLE", "COMPLETING", "POWERED_DOWN")
UNDRAINED = node("IDLE", "COMPLETING", "NOT_RESPONDING", "POWERED_DOWN")
UNDER_JOB = node("MIXED", "POWERED_DOWN")
LOST = Node.read({"State": "UNKNOWN+POWER_DOWN+NOT_RESPONDING"})
GIVEN_UP = Seen(node("DOWN", "POWERED_DOWN", failed_at=100), 1000, answers=True, supply=True)


@pytest.mark.parametrize(
    ("seen", "memory", "act"),
    [
        (Seen(ASLEEP, 1000, answers=True, supply=True), Memory(), Act.SHUT_DOWN),
        (Seen(ASLEEP, 1000, answers=True, supply=True, operation=True), Memory(), None),
        (Seen(ASLEEP, 1000, answers=True, supply=True), Memory(asleep=True), None),
        (Seen(ASLEEP, 1000, answers=True, supply=True), Memory(appeared=1), Act.SHUT_DOWN),
        (Seen(ASLEEP, 1000, answers=False, supply=True), Memory(told=900, silent=980), Act.CUT),
        # A boot for which Slurm did not wait, or a system that halted.
        (Seen(ASLEEP, 1000, answers=False, supply=True), Memory(silent=100), None),
        (Seen(ASLEEP, 1000, answers=False, supply=True), Memory(silent=100, appeared=900), None),
        (Seen(ASLEEP, 1000, answers=False, supply=True), Memory(silent=100, appeared=400), Act.CUT),
        (Seen(ASLEEP, 1000, answers=False, supply=True), Memory(told=900, silent=999), None),
        (Seen(ASLEEP, 1000, answers=True, supply=True), Memory(told=600), Act.CUT),
        (Seen(IDLE, 1000, answers=True, supply=True), Memory(told=600), None),
        (Seen(IDLE, 1000, answers=False, supply=True), Memory(told=900, silent=980), Act.CUT),
        (Seen(WAKING, 1000, answers=False, supply=False), Memory(), Act.ON),
        (Seen(WAKING, 1000, answers=False, supply=False, silent_device=True), Memory(), None),
        (Seen(ASLEEP, 1000, answers=True, supply=True, silent_device=True), Memory(), None),
        (Seen(ASLEEP, 1000, answers=False, silent_device=True), Memory(told=900, silent=980), None),
        (Seen(WAKING, 1000, answers=False, supply=True), Memory(silent=900), Act.ON),
        (Seen(WAKING, 1000, answers=False, supply=True), Memory(silent=900, attempts=1, tried=990), None),
        (Seen(WAKING, 1000, answers=False, supply=True), Memory(told=900, silent=980), Act.CUT),
        # slurmctld has restarted, and would wait for ever for a system that runs, or never starts.
        (Seen(UNLIMITED, 1000, answers=True, supply=True), Memory(), Act.REMIND),
        (Seen(UNLIMITED, 1000, answers=False, silent_device=True), Memory(), Act.REMIND),
        (Seen(node("IDLE", "POWERING_UP", "MAINT"), 1000, answers=True, supply=True), Memory(), None),
        (Seen(IDLE, 1000, answers=False, supply=False), Memory(silent=900), Act.BELIEVE),
        (Seen(LOST, 1000, answers=False, supply=False), Memory(silent=900), Act.RECALL),
        # Slurm puts a silent node down, and that stays while it is powered down.
        (Seen(SILENT, 1000, answers=False, supply=False), Memory(silent=900), Act.RECALL),
        (Seen(SILENT, 1000, answers=False, silent_device=True), Memory(silent=900), None),
        (Seen(SILENT_ASLEEP, 1000, answers=False, supply=False), Memory(), Act.RESUME),
        (Seen(LOST, 1000, answers=True, supply=True), Memory(), None),
        (Seen(Node.read({"State": "UNKNOWN+DRAIN"}), 1000, answers=False, supply=False), Memory(silent=900), None),
        (Seen(HALF, 1000, answers=False, supply=False), Memory(silent=900), Act.RESUME),
        # slurmctld was killed before it had saved that the machine is awake, or that the job has ended.
        (Seen(UNDER_JOB, 1000, answers=True, supply=True), Memory(appeared=1, missed=1), None),
        (Seen(UNDER_JOB, 1000, answers=False, supply=False), Memory(), None),
        (Seen(UNDER_JOB, 1000, answers=False, supply=False), Memory(missed=950), None),
        (Seen(UNDER_JOB, 1000, answers=False, supply=False), Memory(missed=940), Act.WAKE),
        (Seen(UNDER_JOB, 1000, answers=False, supply=True), Memory(missed=900, silent=900), None),
        (Seen(UNDER_JOB, 1000, answers=False, supply=True), Memory(missed=900, silent=400), Act.WAKE),
        (Seen(UNDER_JOB, 1000, answers=False, silent_device=True), Memory(missed=900, silent=400), None),
        # Slurm wakes it after it has gone down.
        (Seen(node("MIXED", "POWERING_DOWN"), 1000, answers=False, supply=False), Memory(missed=900), None),
        (Seen(ENDING, 1000, answers=False, supply=False), Memory(asleep=True), Act.RECALL),
        (Seen(UNDRAINED, 1000, answers=False, supply=False), Memory(asleep=True), Act.RECALL),
        (Seen(ENDING, 1000, answers=False, supply=True), Memory(silent=900), None),
        (Seen(IDLE, 1000, answers=False, supply=None), Memory(silent=900), None),
        (Seen(node("ALLOCATED"), 1000, answers=False, supply=False), Memory(silent=900), Act.ON),
        (Seen(node("IDLE", "DRAIN"), 1000, answers=False, supply=False), Memory(silent=900), None),
        (Seen(node("IDLE", "DRAIN", "POWERED_DOWN"), 1000, answers=True, supply=True), Memory(), None),
        (Seen(MEMTEST, 1000, answers=False, supply=True), Memory(silent=100, appeared=400), None),
        (
            Seen(node("DOWN", "POWERED_DOWN", failed_at=100), 1000, answers=False, supply=False),
            Memory(),
            Act.RESUME,
        ),
        (
            Seen(node("DOWN", "POWERED_DOWN", failed_at=100), 1000, answers=False, supply=False),
            Memory(failures=2),
            Act.GIVE_UP,
        ),
        # It failed before control's clock was set back.
        (
            Seen(node("DOWN", "POWERED_DOWN", failed_at=9000), 1000, answers=False, supply=False),
            Memory(failed_at=9000, failures=1),
            Act.RESUME,
        ),
        # Slurm gave up, and it still boots.
        (GIVEN_UP, Memory(), None),
        (GIVEN_UP, Memory(failed_at=100, failures=1, appeared=500), None),
        (GIVEN_UP, Memory(failed_at=100, failures=1, appeared=400), Act.SHUT_DOWN),
    ],
)
def test_each_contradiction_is_put_right(seen: Seen, memory: Memory, act: Act | None) -> None:
    assert decide.decide(seen, memory, TIMEOUT)[0] is act


def test_a_job_that_a_machine_sleeps_through_is_counted_from_its_start() -> None:
    """slurmctld wakes it within two seconds; a request of ours then would stay."""
    memory, acts = Memory(), []
    for now, shown in [(1000, UNDER_JOB), (1010, WAKING), (1100, ASLEEP), (2000, UNDER_JOB), (2060, UNDER_JOB)]:
        act, _, memory = decide.decide(Seen(shown, now, answers=False, supply=False), memory, TIMEOUT)
        acts.append(act)

    assert acts == [None, Act.ON, None, None, Act.WAKE]


def test_a_request_to_power_up_that_stayed_keeps_no_machine_awake() -> None:
    idle, asleep = (Node.read({"State": state}) for state in ("IDLE+POWER_UP", "IDLE+POWERED_DOWN+POWER_UP"))

    assert (idle.idle, idle.decided, asleep.decided) == (True, False, True)


def test_a_device_that_always_says_on_delays_no_job() -> None:
    memory, acts = Memory(told=900, silent=905), []
    for now in range(1000, 1090, 15):
        act, _, memory = decide.decide(Seen(WAKING, now, answers=False, supply=True), memory, TIMEOUT)
        acts.append(act)

    assert acts[:2] == [Act.CUT, Act.ON]
    assert Act.CUT not in acts[1:]


def test_a_device_that_always_says_on_is_not_cut_for_ever() -> None:
    memory, cuts = Memory(told=1000, silent=1005), []
    for now in range(1020, 4000, 15):
        act, _, memory = decide.decide(Seen(ASLEEP, now, answers=False, supply=True), memory, TIMEOUT)
        cuts += [now] if act is Act.CUT else []

    # Later as any that is on without an answer.
    assert cuts[-1] - cuts[-2] > TIMEOUT


def test_what_a_person_starts_is_not_cut_because_its_device_always_said_on() -> None:
    memory, acts = Memory(told=900, silent=905), []
    for now in range(1000, 1600, 15):
        act, _, memory = decide.decide(Seen(ASLEEP, now, answers=now > 1000, supply=True), memory, TIMEOUT)
        acts.append(act)

    assert set(acts[1:]) == {None}


DRAINED_WAKING = node("MIXED", "POWERING_UP", "NOT_RESPONDING", "DRAIN")


@pytest.mark.parametrize(
    ("looks", "act"),
    [
        ([DRAINED_WAKING], Act.ON),  # A person woke it.
        ([WAKING, DRAINED_WAKING], None),
        ([WAKING, DRAINED_WAKING, DRAINED_WAKING], None),
        ([WAKING, DRAINED_WAKING, WAKING], Act.ON),
        ([WAKING, node("DOWN", "DRAIN", "POWERED_DOWN"), DRAINED_WAKING], Act.ON),
    ],
)
def test_what_a_person_drains_while_a_job_wakes_it_stays_off(looks: list[Node], act: Act | None) -> None:
    memory, found = Memory(), None
    for minutes, shown in enumerate(looks):
        found, _, memory = decide.decide(Seen(shown, 1000 + 60 * minutes, answers=False, supply=False), memory, TIMEOUT)

    assert found is act


@pytest.mark.parametrize("operation", ["move-share", "remove-node", "replace-node", "shutdown"])
def test_what_a_command_switches_off_while_a_job_wakes_it_stays_off(operation: str) -> None:
    shown = Node.read({"State": "MIXED+DRAIN+POWERING_UP+NOT_RESPONDING", "Reason": OPERATIONS[operation]})

    assert decide.decide(Seen(shown, 1000, answers=False, supply=False), Memory(), TIMEOUT)[0] is None


def test_what_sleeps_is_known_of_machines_that_are_out_of_service_too() -> None:
    drained = node("IDLE", "DRAIN", "POWERED_DOWN")
    _, _, gone = decide.decide(Seen(drained, 1000, answers=False, supply=False), Memory(told=900), TIMEOUT)
    _, _, back = decide.decide(Seen(node("IDLE", "DRAIN"), 1100, answers=True, supply=True), gone, TIMEOUT)

    assert (gone.asleep, back.asleep) == (True, False)


@pytest.mark.parametrize("reason", ["ResumeTimeout reached", "fan : ResumeTimeout reached"])
def test_a_machine_that_did_not_wake_is_recognised_by_the_reasons_of_both_releases(reason: str) -> None:
    shown = {"State": "DOWN+POWERED_DOWN", "Reason": reason, "ReasonSetByUser": "slurm"}

    assert Node.read({**shown, "ReasonChangedAt": "2026-11-25T10:00:00"}).failed_at > 0


@pytest.mark.parametrize(
    ("seen", "memory", "act", "later"),
    [
        (Seen(WAKING, 1000, answers=False, supply=False), Memory(tried=8000, attempts=1, silent=8000), Act.ON, 60),
        (Seen(ASLEEP, 1000, answers=False, supply=True), Memory(told=8000, silent=8000), Act.CUT, 15),
        (Seen(ASLEEP, 1000, answers=True, supply=True), Memory(appeared=8000), Act.SHUT_DOWN, TIMEOUT),
    ],
)
def test_a_clock_that_was_ahead_delays_nothing(seen: Seen, memory: Memory, act: Act, later: float) -> None:
    """Control booted with a wrong clock, which was set back after a look."""
    first, _, memory = decide.decide(seen, memory, TIMEOUT)
    then = dataclasses.replace(seen, now=seen.now + later)

    assert (first, decide.decide(then, memory, TIMEOUT)[0]) == (None, act)


@pytest.mark.parametrize("looks", [[WAKING], [ASLEEP, WAKING]])
def test_a_machine_that_its_button_switched_on_boots_without_an_edge_of_its_supply(looks: list[Node]) -> None:
    """A plug gives one at the first attempt to wake a machine that is silent, and on."""
    memory, acts = Memory(asleep=True, silent=100), []
    for now, shown in enumerate([*looks, WAKING], start=1000):
        act, _, memory = decide.decide(Seen(shown, now, answers=False, supply=True), memory, TIMEOUT)
        acts.append(act)
    again, _, memory = decide.decide(Seen(WAKING, 1060, answers=False, supply=True), memory, TIMEOUT)

    assert set(acts) == {None}
    assert (again, memory.attempts) == (Act.ON, 2)


@dataclasses.dataclass
class World:
    """A machine and a model of slurmctld, as measured in tests/native/power. Times are seconds."""

    chance: random.Random
    now: float = 1e6
    supply: bool = True
    booted: float = 1.0
    """when its system answers; 0: it does not run"""
    halted: bool = False
    job: bool = False
    base: str = "IDLE"
    power: str = ""
    since: float = 0.0
    limited: bool = True
    """whether it knows that the machine does not respond, without which it waits for ever"""
    failed_at: float = 0.0
    memory: Memory = dataclasses.field(default_factory=Memory)
    needless: float = 0.0

    @property
    def answers(self) -> bool:
        return self.supply and not self.halted and 0 < self.booted <= self.now

    def switch(self, on: bool) -> None:
        if on and not self.supply:
            self.booted, self.halted = self.now + self.chance.randint(20, 120), False
        self.supply = on

    def slurm(self) -> None:
        """What slurmctld does by itself."""
        if self.power == "POWERING_DOWN" and self.now - self.since >= 180:
            self.power = "POWERED_DOWN"
        if self.power == "POWERED_DOWN" and self.job and self.base == "IDLE":
            self.power, self.since, self.limited = "POWERING_UP", self.now, True
        if self.power == "POWERING_UP":
            if self.answers and self.booted >= self.since:
                self.power = ""
            elif self.limited and self.now - self.since >= TIMEOUT:
                self.base, self.power, self.failed_at = "DOWN", "POWERED_DOWN", self.now
        if self.power == "POWERED_DOWN" and self.answers and self.booted >= self.since + 180:
            self.base, self.power = "IDLE", ""
        if self.power == "" and self.job and self.answers and self.chance.random() < 0.2:
            self.job = False

    def step(self, sabotage: bool) -> None:
        """Fifteen seconds, in which the world may do what it likes."""
        self.now += 15
        if sabotage and self.chance.random() < 0.05:
            what = self.chance.choice(["job", "plug", "button", "restart"])
            self.job = self.job or what == "job"
            self.limited = self.limited and what != "restart"
            if what in ("plug", "button"):
                self.switch(what == "button")
        self.slurm()
        self.look(silent=sabotage and self.chance.random() < 0.1, obeys=not sabotage or self.chance.random() < 0.9)

    def look(self, silent: bool, obeys: bool) -> None:
        words = {self.base, self.power} - {""}
        if self.power == "POWERING_UP" and self.limited:
            words |= {"NOT_RESPONDING"}
        if self.job and self.power in ("", "POWERING_UP"):
            words = (words - {"IDLE"}) | {"MIXED"}
        shown = Node(frozenset(words), failed_at=self.failed_at if self.base == "DOWN" else 0.0)
        seen = Seen(shown, self.now, self.answers, True if self.answers else self.supply, silent_device=silent)
        act, _, self.memory = decide.decide(seen, self.memory, TIMEOUT)
        if act in (Act.ON, Act.CUT) and obeys:
            self.switch(act is Act.ON)
        elif act is Act.SHUT_DOWN:
            self.halted = True
        elif act is Act.REMIND:
            self.limited = True
        elif act is Act.BELIEVE:
            self.power, self.since = "POWERING_DOWN", self.now
        elif act in (Act.RESUME, Act.GIVE_UP):
            self.base, self.failed_at = "IDLE", 0.0  # After GIVE_UP, a person does it.
        elif shown.idle and self.chance.random() < 0.1:
            self.power, self.since = "POWERING_DOWN", self.now
        on_without_need = self.supply and self.power == "POWERED_DOWN" and not self.job
        self.needless = self.needless + 15 if on_without_need else 0.0


@pytest.mark.parametrize("hundred", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 10))])
def test_a_thousand_random_histories_end_with_belief_and_truth_the_same(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        world = World(random.Random(seed))
        for _ in range(200):
            world.step(sabotage=True)
        for _ in range(400):
            world.step(sabotage=False)
            # An appeared machine has the time of a boot, then it shuts down.
            assert world.needless <= TIMEOUT + decide.SHUTDOWN, f"seed {seed}: on without need"

        assert not world.job, f"seed {seed}: a job still waits: {world}"
        assert world.power != "POWERED_DOWN" or not world.supply, f"seed {seed}: asleep, but on: {world}"
        assert world.power != "" or world.supply, f"seed {seed}: awake, but off: {world}"
