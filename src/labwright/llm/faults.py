"""Why a model did not answer. Each fault says what the user can do and whether a retry may help."""

from __future__ import annotations

from labwright.domain.errors import LabwrightError


class ModelFault(LabwrightError):
    """The language model did not answer."""

    code = "model"
    retryable = False

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        model: str = "",
        said: str = "",
        wait_seconds: float = 0.0,
    ) -> None:
        """Without a `message`, build it from the docstring, the model's name and the provider's own text (`said`)."""
        usual = (type(self).__doc__ or "").strip()
        super().__init__(message or f"{f'{model}: ' if model else ''}{usual}{f' ({said})' if said else ''}", hint=hint)
        self.said = said
        self.wait_seconds = wait_seconds  # how long the provider asks us to wait


class Unreachable(ModelFault):
    """The language model cannot be reached."""

    retryable = True
    hint = "Check the network, the address in labwright models --json, and the provider's status page."


class Overloaded(ModelFault):
    """The provider is overloaded."""

    retryable = True
    hint = "Try again later, or choose another model: docs/how-to/choose-a-model.md."


class RateLimited(ModelFault):
    """The provider's rate limit is reached."""

    retryable = True
    hint = "Wait a little, or set model_requests_per_minute below your limit."


class TooSlow(ModelFault):
    """The language model timed out."""

    hint = "Raise model_silence_seconds or model_answer_seconds, or choose a faster model."


class QuotaUsedUp(ModelFault):
    """The account at the provider has no credit left."""

    hint = "Add credit at the provider, or choose another model."


class KeyMissing(ModelFault):
    """There is no key for this provider."""


class KeyRefused(ModelFault):
    """The provider does not accept the key."""

    hint = "Create a new key at the provider and set it again. `labwright models` shows where the key is read from."


class NoSuchModel(ModelFault):
    """The provider has no model with that name."""

    hint = "Compare the name in LABWRIGHT_MODEL or labwright.toml with the provider's list."


class Rejected(ModelFault):
    """The provider rejects the request."""


class ConversationTooLong(Rejected):
    """The conversation is longer than the model's context."""

    hint = "Shorten it, or choose a model with a larger context."


class AnswerCut(ModelFault):
    """The answer was cut off before its end."""

    retryable = True  # only while no part of the answer was shown
    hint = "Ask again. The text so far is not the complete answer."


class AnswerWithheld(ModelFault):
    """The provider's content filter withheld the answer."""


class AnswerMalformed(ModelFault):
    """The model did not answer in the requested format."""

    hint = "Try again, or choose a more capable model for this tier."
