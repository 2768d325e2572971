"""The requests that the rule-based chat understands: one pattern per form. Everything else gets the list in ABOUT."""

from __future__ import annotations

import re

from labwright.agent.offline import actions, project, runs
from labwright.agent.offline.reply import Reply, Results, Rule

ABOUT = """\
I am a set of rules, not a language model. I understand these requests:

- what is running, which runs failed, best run by METRIC
- show RUN, METRIC of RUN, metrics of RUN, logs of RUN, why did RUN fail, how long did RUN take
- compare RUN and RUN by METRIC
- sweeps, best of SWEEP
- run COMMAND (and tell me when it is done), stop RUN, stop all runs, rerun RUN (with OPTION VALUE), delete RUN
- tell me when RUN is done (or SWEEP)
- show FILE, files, gpus, alerts, plans, remember NOTE
- in plan mode, a goal: the values to try for each flag of a script, and the metric

RUN is an id, its beginning, a name, `last`, `last failed`, or `it` for the run we just talked about.
For free conversation set LABWRIGHT_MODEL and restart the server."""
_HELLO = "Hello. I am a set of rules, not a language model. Say `help` to see what I understand."
_POLITE = re.compile(
    r"^(?:(?:hi|hey|hello|ok|okay|so|and|then|now|please|well|labwright)\b[,:!]?\s+"
    r"|(?:can|could|would) you (?:please )?)+",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"(?:,? (?:please|right now|now|for me|again))+$", re.IGNORECASE)
_CONTRACTION = re.compile(r"\b(what|how|which|it)['’]s\b|\b(what)s\b", re.IGNORECASE)

_THE = "(?:(?:the|my|our|all|all the) )?"
_SHORT_RUN = rf"{_THE}(?:run )?(?P<run>@?[\w.=-]+(?: [\w.=-]+)??)(?: run)?"
_RUN = rf"{_THE}(?:run )?(?P<run>@?\S+(?: \S+){{0,7}}?)(?: run)?"
_KEY = r"(?P<key>[\w./-]+)"
_DONE = "(?:done|finished|ended|over|ends|finishes)"
_STATUS = "(?P<status>fail(?:ed)?|crash(?:ed)?|finish(?:ed)?|stopped|lost|queued|waiting|running)"
# Quoted text belongs to the command; an apostrophe inside a word does not start a quote.
_TELL = r"(?P<tell>,? and (?:then )?(?:tell me|let me know|notify me)\b(?:[^\"'`’]|(?<=\w)['’](?=\w))*)?"
_PROGRAM = r"(?:python[\d.]*|bash|sh|torchrun|accelerate|make|uv|\./\S+|\S+\.(?:py|sh))"
_FILE = r"(?P<path>[\w./-]*\w\.(?:py|sh|toml|ya?ml|json|md|txt|cfg|ini|csv|ipynb))"


def _greet(_match: re.Match[str], _results: Results) -> Reply:
    return _HELLO


def _thank(_match: re.Match[str], _results: Results) -> Reply:
    return "You are welcome."


def _help(_match: re.Match[str], _results: Results) -> Reply:
    return ABOUT


_FORMS: tuple[tuple[str, Rule], ...] = (
    (r"(?:hi|hey|hello|good (?:morning|afternoon|evening))(?:,? (?:there|labwright))?", _greet),
    (r"(?:thanks?|thank you|bye)(?: .{0,30})?", _thank),
    (r"help(?: me)?|what can you do", _help),
    (r"what (?:is )?(?:still )?(?:running|going on)|status|ps|(?:is|are) (?:anything|any runs) running", runs.running),
    (rf"(?:list |show |what are )?{_THE}(?:recent |latest |last )?runs", runs.recent),
    (rf"(?:(?:which|what|how many) {_THE}runs?|what)(?: have| has| are| were)? {_STATUS}", runs.listed),
    (rf"(?:(?:list|show|any) )?{_THE}{_STATUS} runs", runs.listed),
    (rf"why (?:did|has|is|does) {_RUN} (?:fail|failed|die|crash|crashed|stop)", runs.why_failed),
    (rf"what (?:happened to|went wrong with|is wrong with) {_RUN}", runs.why_failed),
    (rf"compare (?P<runs>.+?)(?: (?:by|on|in|for) {_KEY})?", runs.compare),
    (rf"(?:(?:what|which) is |show )?{_THE}(?P<way>best) run(?: (?:by|in|on|for) (?:the )?{_KEY})?", runs.best_run),
    (rf"which run is (?:the )?(?P<way>best)(?: (?:by|in|on|for) {_KEY})?", runs.best_run),
    (rf"which run has the (?P<way>best|highest|largest|lowest|smallest) {_KEY}", runs.best_run),
    (
        r"(?:what is |show )?(?:the )?best (?:\w+ )?(?:of|in) (?:the )?(?:sweep )?(?P<sweep>@?[\w-]+)",
        runs.best_of_sweep,
    ),
    (rf"(?:list |show )?{_THE}sweeps", project.sweeps),
    (rf"(?:show |what are )?(?:the )?metrics (?:of|for) {_RUN}", runs.metrics),
    (rf"(?:show )?(?:the )?(?:logs?|output) (?:(?:of|for|from) )?{_RUN}", runs.logs),
    (rf"(?:tell me|let me know|notify me) when {_RUN} (?:is |has )?{_DONE}", runs.wait),
    (rf"wait for {_RUN}", runs.wait),
    (rf"how long (?:did|does|has|will) {_RUN} (?:take|taken|run|been running)", runs.duration),
    (rf"when (?:will|is) {_RUN} (?:be )?(?:{_DONE}|finish|end|ready)", runs.duration),
    (rf"(?:stop|kill|cancel) (?:everything|all|{_THE}runs|all {_STATUS} runs)", actions.stop_all),
    (rf"(?:stop|kill|cancel) {_RUN}", actions.stop),
    (rf"(?:rerun|repeat|run again) {_RUN},? (?:but )?(?:with|using) (?P<changes>.+?){_TELL}", actions.rerun_with),
    (rf"(?:rerun|repeat|run again) {_RUN}{_TELL}", actions.rerun),
    (rf"(?:delete|remove) {_RUN}", actions.delete),
    (
        rf"(?:(?:list|show|how many|what is on) )?{_THE}(?:gpus?|cpus?|cores|cluster|machine)(?: do (?:we|i) have)?",
        project.machine,
    ),
    (r"(?:(?:list|show|any)(?: the)? )?alerts", project.alerts),
    (r"(?:(?:list|show)(?: the)? )?plans", project.plans),
    (r"remember (?:that )?(?P<note>.+)", project.remember),
    (rf"(?:(?:show|list) )?{_THE}(?:files|code|project)", project.files),
    (rf"(?:show|read|open|cat|what is in)(?: the)?(?: file)? {_FILE}", project.file),
    (rf"run:? (?P<command>\S.*?){_TELL}", actions.start),
    (rf"(?:start|launch|execute|submit):? (?P<command>{_PROGRAM}(?: .*?)?){_TELL}", actions.start),
    (
        r"(?:plan|try|sweep|tune|search|optimi[sz]e|improve|explore|train(?!\.)|find (?:the best|a better))\b.*",
        project.goal,
    ),
    (rf"is {_RUN} (?:still |already )?(?:running|waiting|queued|{_DONE})", runs.show),
    (rf"(?:what is |show )?(?:the )?(?:status|config|parameters|command) of {_RUN}", runs.show),
    (rf"(?:show|describe|what is|how is) {_SHORT_RUN}(?: (?:doing|going))?", runs.show),
    (rf"(?:what is |show )?(?:the )?(?:final |last |current )?{_KEY} (?:of|for|in) {_RUN}", runs.metrics),
)
RULES = [(re.compile(pattern, re.IGNORECASE), rule) for pattern, rule in _FORMS]

# Requests that only read and cannot be mistaken for a goal.
_READING = (
    _greet, _thank, _help, runs.running, runs.listed, runs.why_failed, project.sweeps, runs.logs, project.machine,
    project.alerts, project.plans,
)  # fmt: skip
# A whole command, or one run. `run train.py with lr 0.1 and 0.3` and `remove dropout` are goals.
_ACTION = re.compile(
    rf"(?:stop|kill|cancel|rerun|run again|delete) {_THE}(?:run )?[@\w.=-]+(?: [\w.=-]+)??(?: run)?"
    rf"|(?:run|start|launch|execute|submit):? {_PROGRAM}(?: (?!(?:with|and|for|over|by|at|using|to|until)\b)\S+)*",
    re.IGNORECASE,
)
PLANNING_RULES: list[tuple[re.Pattern[str], Rule]] = [
    *((pattern, rule) for pattern, rule in RULES if rule in _READING),
    (_ACTION, actions.refuse_while_planning),
]


def plain(sentence: str) -> str:
    """Return a request without polite words. A command stays as it is."""
    text = _POLITE.sub("", sentence.strip())
    if re.match(r"(?:run|start|launch|execute|submit):? ", text, re.IGNORECASE):
        return text
    text = re.sub(r"\bshow me\b", "show", _CONTRACTION.sub(r"\1\2 is", text), flags=re.IGNORECASE)
    return _TRAILING.sub("", text.rstrip("?!. "))
