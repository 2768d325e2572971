"""The cause of a failure, as the end of the output says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.sidecar.cause import cause_in, cause_in_text, last_line_in

TRACEBACK = """epoch 1 loss 0.3
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 42, in <module>
    main()
  File "/home/ada/project/train.py", line 12, in main
    criterion = LOSSES[name]
                ~~~~~~^^^^^^
KeyError: 'huber'
"""
IN_A_LIBRARY = """Traceback (most recent call last):
  File "/p/train.py", line 7, in <module>
    model(x)
  File "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1740, in _call_impl
    return forward_call(*args, **kwargs)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.
"""
CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in load
FileNotFoundError: [Errno 2] No such file or directory: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 5, in <module>
ValueError: no data
"""
RANKS = """[rank0]: Traceback (most recent call last):
[rank0]:   File "/p/ddp.py", line 9, in <module>
[rank0]:     raise RuntimeError("shape")
[rank0]: RuntimeError: shape
E1118 12:00:00 failed (exitcode: 1) local_rank: 0
Traceback (most recent call last):
  File "/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
====
ddp.py FAILED
"""
LONG_MESSAGE = """Traceback (most recent call last):
  File "m.py", line 3, in <module>
RuntimeError: Error(s) in loading state_dict for Net:
\tsize mismatch for fc.weight
"""
SYNTAX = """  File "/p/train.py", line 3
    def f(
         ^
SyntaxError: '(' was never closed
"""
RICH = """╭───────── Traceback (most recent call last) ─────────╮
│ /p/train.py:3 in <module>                           │
╰─────────────────────────────────────────────────────╯
KeyError: 'huber'
"""
CAUSES = {
    TRACEBACK: "KeyError: 'huber' (train.py:12)",
    TRACEBACK.replace("\n", "\r\n"): "KeyError: 'huber' (train.py:12)",
    IN_A_LIBRARY: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. (train.py:7)",
    CHAINED: "ValueError: no data (a.py:5)",
    RANKS: "RuntimeError: shape (ddp.py:9)",
    LONG_MESSAGE: "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for fc.weight (m.py:3)",
    SYNTAX: "SyntaxError: '(' was never closed (train.py:3)",
    RICH: "KeyError: 'huber'",
    "usage: t.py [-h]\nt.py: error: unrecognized arguments: --lrr": "t.py: error: unrecognized arguments: --lrr",
    "bash: line 1: pythn: command not found\n": "bash: line 1: pythn: command not found",
    "python3: can't open file '/p/tran.py': [Errno 2] No such file or directory": (
        "python3: can't open file '/p/tran.py': [Errno 2] No such file or directory"
    ),
    "\x1b[31mError: the config has no model\x1b[0m\n": "Error: the config has no model",
    "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n": (
        "what():  std::bad_alloc"
    ),
}
NO_CAUSES = ["", "epoch 3 error: 0.25\nval_error: 0.3", "done", "Traceback (most recent call last):\n  File"]


@pytest.mark.parametrize("output", CAUSES, ids=range(len(CAUSES)))
def test_the_cause_is_the_exception_or_the_message_of_the_command(output: str) -> None:
    assert cause_in_text(output) == CAUSES[output]


@pytest.mark.parametrize("output", NO_CAUSES)
def test_no_cause_is_invented(output: str) -> None:
    assert cause_in_text(output) is None


def test_an_error_that_was_handled_long_before_the_end_is_not_the_cause() -> None:
    assert cause_in_text(TRACEBACK + "epoch 2 loss 0.2\n" * 500) is None


def test_only_the_output_of_the_last_attempt_counts(tmp_path: Path) -> None:
    output = tmp_path / "output.log"
    output.write_text(TRACEBACK + "second attempt\ndata missing\n")
    assert cause_in(str(output), len(TRACEBACK)) is None
    assert last_line_in(str(output), len(TRACEBACK)) == "data missing"
    assert cause_in(str(tmp_path / "none")) is None
