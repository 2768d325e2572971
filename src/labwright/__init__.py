"""Labwright plans, runs and explains ML experiments in a project folder.

A training script calls `labwright.init`, `log`, `alert` and `finish`. They are loaded on first use: every sidecar
imports this package, and each import here would slow its start.
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
_STAND_INS = (  # accepted W&B names, so that training continues
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


class _WithoutSdk(dict):  # type: ignore[type-arg]
    """Replace every call, the run and its config if the SDK cannot be loaded. It stores nothing.

    A process that changed its user, or whose state folder was deleted, cannot read our files. Its training continues.
    """

    def __call__(self, *_ignored: object, config: object = None, **_also_ignored: object) -> "_WithoutSdk":
        self.update(config if isinstance(config, dict) else getattr(config, "__dict__", {}))
        return self

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name, self)

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __enter__(self) -> "_WithoutSdk":
        return self

    def __exit__(self, *_ignored: object) -> None:
        return None


def __getattr__(name: str) -> object:
    if name != "run" and name not in _FIXED and name not in _STAND_INS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return _from_sdk(name)
    except (ImportError, OSError) as error:
        return _without_sdk(name, error)


def _from_sdk(name: str) -> object:
    from labwright import sdk

    if name == "run":  # it changes with `init` and `finish`
        return sdk.run
    if name in _STAND_INS:
        from labwright.sdk.held import stand_in

        return stand_in(name)
    globals().update({fixed: getattr(sdk, fixed) for fixed in _FIXED})
    return globals()[name]


def _without_sdk(name: str, error: Exception) -> object:
    import sys

    globals().update(dict.fromkeys((*_FIXED, *_STAND_INS, "run"), _WithoutSdk()))
    try:
        message = "nothing is logged, training continues: the SDK cannot be loaded, for example after a change of user"
        sys.stderr.write(f"labwright: {message} ({error})\n")
    except Exception:  # noqa: BLE001, S110 - stderr may be closed or replaced
        pass
    return globals()[name]


def __dir__() -> list:  # type: ignore[type-arg]
    return sorted({*globals(), *_FIXED, "run"})
