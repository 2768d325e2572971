"""Labwright: plans, runs and explains ML experiments from a project folder.

A training script calls `labwright.init`, `log`, `alert` and `finish`. They are loaded when first asked for: every run's
sidecar imports this package, and each import here would slow its start.
"""

from labwright.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from labwright.sdk import AlertLevel as AlertLevel
    from labwright.sdk import Histogram as Histogram
    from labwright.sdk import Image as Image
    from labwright.sdk import Run as Run
    from labwright.sdk import alert as alert
    from labwright.sdk import config as config
    from labwright.sdk import define_metric as define_metric
    from labwright.sdk import finish as finish
    from labwright.sdk import init as init
    from labwright.sdk import log as log
    from labwright.sdk import login as login
    from labwright.sdk import run as run
    from labwright.sdk import save as save
    from labwright.sdk import summary as summary
    from labwright.sdk import watch as watch

_FIXED = (
    "AlertLevel",
    "Histogram",
    "Image",
    "Run",
    "alert",
    "config",
    "define_metric",
    "finish",
    "init",
    "log",
    "login",
    "save",
    "summary",
    "watch",
)
_NOT_KEPT = (  # of W&B's; taken, so that training goes on
    "Artifact",
    "Audio",
    "Html",
    "Molecule",
    "Object3D",
    "Plotly",
    "Settings",
    "Table",
    "Video",
    "link_artifact",
    "link_model",
    "log_artifact",
    "log_model",
    "mark_preempting",
    "plot",
    "require",
    "setup",
    "teardown",
    "termerror",
    "termlog",
    "termwarn",
    "unwatch",
)


def __getattr__(name: str) -> object:
    if name in _NOT_KEPT:
        from labwright.sdk.not_kept import not_kept

        return not_kept(name)
    if name == "run" or name in _FIXED:
        from labwright import sdk

        if name == "run":  # changes with `init` and `finish`
            return sdk.run
        globals().update({fixed: getattr(sdk, fixed) for fixed in _FIXED})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list:  # type: ignore[type-arg]
    return sorted({*globals(), *_FIXED, "run"})
