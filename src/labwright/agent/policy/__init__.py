"""Recognises what ought to be a run: training, evaluation, launchers, however they are spelled.

A help, not the fence: `agent/shell` sees to it that such a command would come to nothing. Read `reader.py` first; the
spellings that it knows are in `tests/unit/policy_corpus/`.
"""

from labwright.agent.policy.verdict import Proposal, Verdict, judge

__all__ = ["Proposal", "Verdict", "judge"]
