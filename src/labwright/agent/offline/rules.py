"""The rules of conversation without a model: which words are which request."""

from __future__ import annotations

import re

from labwright.agent.offline import comparing, deeds, project, runs
from labwright.agent.offline.reply import Reply, Results, Rule

ABOUT = """\
I am a set of rules, not a language model, so I understand plain requests only:

- what is running, which runs failed, which run is the best by METRIC
- show RUN, METRIC of RUN, metrics of RUN, logs of RUN, why did RUN fail, how long did RUN take
- compare RUN and RUN by METRIC
- sweeps, best of SWEEP
- run COMMAND (and tell me when it is done), stop RUN, stop all runs, rerun RUN (with OPTION VALUE), delete RUN
- tell me when RUN is done (or SWEEP)
- show FILE, files, gpus, alerts, plans, remember NOTE
- in plan mode, a goal: which values of what to try in which script, by METRIC

RUN is an id, its beginning, a name, `last`, `last failed`, or `it` for the one just spoken of.
For free conversation set LABWRIGHT_MODEL and start the server again."""
_HELLO = "Hello. I am a set of rules, not a language model. Say `help` for what I understand."
_POLITE = re.compile(
    r"^(?:(?:hi|hey|hello|ok|okay|so|and|then|now|please|well|labwright)\b[,:!]?\s+"
    r"|(?:can|could|would|will) you (?:please )?|i (?:want|would like) (?:you )?to |i'd like (?:you )?to )+",
    re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(
    r"(?:,? (?:please|right now|now|for me|at the moment|so far|currently|exactly|again))+$", re.I
)
_SPELLINGS = (
    (re.compile(r"\b(what|how|which|where|who|it|that)['’]s\b|\b(what)s\b", re.I), r"\1\2 is"),
    (re.compile(r"\bshow me\b", re.I), "show"),
)

_ARTICLE = "(?:(?:the|my|our|all|all the|all of the) )?"
_WORD = rf"{_ARTICLE}(?:run )?(?P<run>@?[\w.=-]+(?: [\w.=-]+)??)(?: run)?"
_REF = rf"{_ARTICLE}(?:run )?(?P<run>@?\S+(?: \S+){{0,7}}?)(?: run)?"
_KEY = r"(?P<key>[\w./-]+)"
_DONE = "(?:done|finished|ended|over|ends|finishes)"
# Whatever is to be told, it is known at the end. An apostrophe is none of a word's if it ends an argument.
_AND_TELL = r",? and (?:then )?(?:tell me|let me know|notify me|wake me)\b(?:[^\"'`’]|(?<=\w)['’](?=\w))*"
_HAVE = "(?: (?:do (?:we|i) have|are (?:there|free|busy|in use)))?"
_STATUS = "(?P<status>failed|finished|stopped|lost|queued|waiting|running)"
_ENDED = r"(?P<status>fail(?:ed)?|crash(?:ed)?|finish(?:ed)?|stopped|lost|queued|waiting|running)"
_PROGRAM = r"(?:python[\d.]*|bash|sh|torchrun|accelerate|make|uv|\./\S+|\S+\.(?:py|sh))"
_FILE = r"(?P<path>[\w./-]*\w\.(?:py|sh|toml|ya?ml|json|md|txt|cfg|ini|csv|ipynb))"


def _greet(_match: re.Match[str], _results: Results) -> Reply:
    return _HELLO


def _accept_thanks(_match: re.Match[str], _results: Results) -> Reply:
    return "You are welcome."


def _help(_match: re.Match[str], _results: Results) -> Reply:
    return ABOUT


RULES: list[tuple[re.Pattern[str], Rule]] = [
    (re.compile(pattern, re.IGNORECASE), rule)
    for pattern, rule in (
        (r"(?:hi|hey|hello|good (?:morning|afternoon|evening))(?:,? (?:there|labwright))?", _greet),
        (r"(?:thanks?|thank you|thx|cheers|bye|goodbye)(?: .{0,30})?", _accept_thanks),
        (r"help(?: me)?|what can you do", _help),
        (r"(?:what (?:is )?(?:still )?(?:running|going on|happening)|status|ps|what runs)", runs.running),
        (r"(?:is|are) (?:anything|something|any runs?|there any runs?|runs) (?:still )?running", runs.running),
        (
            r"how (?:is it|are things|is everything) going|how many runs(?: are there| do (?:we|i) have)?",
            runs.running,
        ),
        (rf"(?:list |show |what are |which are )?{_ARTICLE}(?:recent |latest |last )?runs", runs.recent),
        (
            rf"(?:which|what|how many)(?: of)? {_ARTICLE}runs? (?:(?:have|has|had|are|were|did) )?{_ENDED}",
            runs.listed,
        ),
        (rf"(?:(?:list|show|what are|any|are there(?: any)?) )?{_ARTICLE}{_STATUS} runs", runs.listed),
        (rf"(?:what|did anything|has anything|did any runs?|have any runs?)(?: has| have)? {_ENDED}", runs.listed),
        (rf"why (?:did|has|is|does) {_REF} (?:fail|failed|failing|die|crash|crashed|stop)", runs.why_failed),
        (rf"what (?:happened to|went wrong with|is wrong with) {_REF}", runs.why_failed),
        (rf"compare (?P<runs>.+?)(?: (?:by|on|in|for) {_KEY})?", comparing.compare),
        (
            rf"(?:(?:what|which) is |show )?{_ARTICLE}(?P<way>best|top) run(?: (?:by|in|on|for|with) (?:the )?{_KEY})?",
            comparing.best_run,
        ),
        (
            rf"which run (?:is|was|did|does|performs|performed) (?:the )?(?P<way>best)(?: (?:by|in|on|for) {_KEY})?",
            comparing.best_run,
        ),
        (
            rf"which run (?:has|had|got|gets) the (?P<way>best|highest|largest|lowest|smallest) {_KEY}",
            comparing.best_run,
        ),
        (
            r"(?:(?:what|which)(?: run| one)? is |show )?(?:the )?(?P<way>second|third|2nd|3rd|next)[- ]best"
            rf"(?: run| one)?(?: (?:by|in|on|for) (?:the )?{_KEY})?",
            comparing.next_best,
        ),
        (
            r"(?:what is |show )?(?:the )?best (?:\w+ )?(?:of|in) (?:the )?(?:sweep )?(?P<sweep>@?[\w-]+)",
            comparing.best,
        ),
        (rf"(?:list |show )?{_ARTICLE}sweeps", project.sweeps),
        (rf"(?:show |what are )?(?:the )?metrics (?:of|for) {_REF}", runs.metrics),
        (rf"how (?:good|well) (?:is|was|did) {_REF}(?: do| go| perform)?", runs.metrics),
        (rf"(?:show )?(?:the )?(?:logs?|output) (?:(?:of|for|from) )?{_REF}", runs.logs),
        (rf"(?:tell me|let me know|notify me|wake me) when {_REF} (?:is |has )?{_DONE}", runs.tell),
        (rf"wait for {_REF}", runs.tell),
        (rf"how long (?:did|does|has|will) {_REF} (?:take|took|taken|run|running|been running)", runs.duration),
        (rf"when (?:will|is|does|did) {_REF} (?:be )?(?:{_DONE}|finish|end|ready)", runs.duration),
        (rf"(?:stop|kill|cancel) (?:everything|all|{_ARTICLE}runs|all {_STATUS} runs)", deeds.stop_all),
        (rf"(?:stop|kill|cancel) {_REF}", deeds.stop),
        (
            rf"(?:rerun|repeat|run again) {_REF},? (?:but )?(?:with|at|using) (?P<changes>.+?)(?P<tell>{_AND_TELL})?",
            deeds.rerun_with,
        ),
        (rf"(?:rerun|repeat|run again) {_REF}(?P<tell>{_AND_TELL})?", deeds.rerun),
        (rf"(?:delete|remove) {_REF}", deeds.delete),
        (
            rf"(?:(?:list|show|which|what|how many)(?: the)? )?(?:gpus?|cores|cpus?|cluster|machine|hardware){_HAVE}",
            project.machine,
        ),
        (
            r"(?:do (?:we|i) have|is there|are there|have (?:we|i) got) (?:a |an |any )?(?:free )?gpus?(?: free)?",
            project.machine,
        ),
        (
            r"(?:(?:what is|what runs|who is|who runs) )?(?:running )?on (?:the |our |my )?gpus?"
            r"|(?:how (?:busy|full) are |who (?:uses|has|holds) )(?:the |our |my )?gpus?"
            r"|(?:what is |show )?(?:the )?gpu (?:usage|use|status|memory)",
            project.machine,
        ),
        (r"(?:(?:list|show|any)(?: the)? )?alerts", project.alerts),
        (r"(?:(?:list|show)(?: the)? )?plans", project.plans),
        (r"remember (?:that )?(?P<note>.+)", project.remember),
        (rf"(?:show|list|what are)? ?{_ARTICLE}(?:files|code|project)", project.files),
        (rf"(?:show|read|open|cat|print|what is in)(?: the)?(?: file| code of)? {_FILE}", project.file),
        (rf"(?:what does|explain|how does) (?:the )?{_FILE}(?: do| work)?", project.explain),
        (rf"run:? (?P<command>\S.*?)(?P<tell>{_AND_TELL})?", deeds.start),
        (rf"(?:start|launch|execute|submit):? (?P<command>{_PROGRAM}(?: .*?)?)(?P<tell>{_AND_TELL})?", deeds.start),
        (
            r"(?:plan|try|sweep|tune|search|optimi[sz]e|improve|explore|train(?!\.)|experiment"
            r"|find (?:the best|a better|out))\b.*",
            project.goal,
        ),
        (r"what (?:should|could|can|shall) (?:i|we) (?:try|do|run)(?: next)?", project.advice),
        (rf"(?:is|has) {_REF} (?:still |already )?(?:running|going|waiting|queued|{_DONE}|ready)", runs.show),
        (
            r"(?:what is |what are |show )?(?:the )?(?:status|state|config|configuration|param(?:eter)?s|command) "
            rf"of {_REF}",
            runs.show,
        ),
        (rf"(?:what|which) [\w.-]+ (?:did|does) {_REF} (?:use|have)", runs.show),
        (rf"(?:show|describe|what is|how is|how does) {_WORD}(?: (?:doing|going|look|do|go))?", runs.show),
        (
            rf"(?:what is |show |what was )?(?:the )?(?:final |last |current )?{_KEY} (?:of|for|in) {_REF}",
            runs.one_metric,
        ),
    )
]

# What is said or only looked at, and cannot be taken for a goal.
_LOOKS = (
    _greet,
    _accept_thanks,
    _help,
    runs.running,
    runs.listed,
    runs.why_failed,
    project.sweeps,
    runs.metrics,
    runs.logs,
    project.machine,
    project.alerts,
    project.plans,
)
# A command as it is typed, or one run: `run train.py with lr 0.1 and 0.3` and `remove dropout` are goals.
_DEED = re.compile(
    rf"(?:stop|kill|cancel|rerun|run again|delete) {_ARTICLE}(?:run )?[@\w.=-]+(?: [\w.=-]+)??(?: run)?"
    rf"|(?:run|start|launch|execute|submit):? {_PROGRAM}(?: (?!(?:with|and|for|over|by|at|using|to|until)\b)\S+)*",
    re.IGNORECASE,
)
PLANNING_RULES: list[tuple[re.Pattern[str], Rule]] = [
    *((pattern, rule) for pattern, rule in RULES if rule in _LOOKS),
    (_DEED, deeds.not_while_planning),
]


def plain(sentence: str) -> str:
    """Without what is only said out of politeness. The words of a command stay as they are."""
    words = _POLITE.sub("", sentence.strip())
    if re.match(r"(?:run|start|launch|execute|submit):? ", words, re.IGNORECASE):
        return words
    for spelling, usual in _SPELLINGS:
        words = spelling.sub(usual, words)
    return _AFTERTHOUGHT.sub("", words.rstrip("?!. "))
