"""Why a model did not answer. Each says what a person can do, and whether the same question may be asked again."""

from __future__ import annotations

from labwright.domain.errors import LabwrightError


class ModelFault(LabwrightError):
    """The language model did not answer."""

    code = "model"
    passing = False  # whether the same question may well be answered a little later

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        model: str = "",
        said: str = "",
        wait_seconds: float = 0.0,
    ) -> None:
        """`model` and `said` complete the usual message: whose fault it is, and the provider's own words."""
        usual = (type(self).__doc__ or "").strip()
        super().__init__(message or f"{f'{model}: ' if model else ''}{usual}{f' ({said})' if said else ''}", hint=hint)
        self.said = said
        self.wait_seconds = wait_seconds  # as the provider asked for


class Unreachable(ModelFault):
    """The language model cannot be reached."""

    passing = True
    hint = "Check the network, the address that labwright models --json shows, and the provider's status page."


class Overloaded(ModelFault):
    """The provider cannot serve this now."""

    passing = True
    hint = "Try again later, or choose another model: docs/how-to/choose-a-model.md."


class RateLimited(ModelFault):
    """The provider's rate limit is reached."""

    passing = True
    hint = "Wait a little, or set model_requests_per_minute below your limit."


class TooSlow(ModelFault):
    """The language model took too long."""

    hint = "Raise model_silence_seconds or model_answer_seconds, or choose a faster model."


class QuotaUsedUp(ModelFault):
    """The account at the provider has no credit left."""

    hint = "Add credit at the provider, or choose another model."


class KeyMissing(ModelFault):
    """There is no key for this provider."""


class KeyRefused(ModelFault):
    """The provider does not accept the key."""

    hint = "Make a new key at the provider and set it anew; labwright models says where it is looked for."


class NoSuchModel(ModelFault):
    """The provider has no model of that name."""

    hint = "Check the name in LABWRIGHT_MODEL or labwright.toml against the provider's list."


class Rejected(ModelFault):
    """The provider rejects the request."""


class ConversationTooLong(Rejected):
    """The conversation is longer than the model can read."""

    hint = "Shorten it, or choose a model with a larger context."


class AnswerCut(ModelFault):
    """The answer broke off before its end."""

    passing = True  # as long as nothing of it was shown
    hint = "Ask again; what came so far is not the whole answer."


class AnswerWithheld(ModelFault):
    """The provider withheld the answer by its content rules."""


class AnswerMalformed(ModelFault):
    """The model did not answer in the form that was asked for."""

    hint = "Try again, or choose a more able model for this tier."
