"""Words of a request that carry nothing for a plan, and whether a text is English at all."""

from __future__ import annotations

from labwright.planning.goals.words import Words

FILLER = set(
    """a about above across after again all also among an and any are as at average baseline be because been best better between
    both but by can care check choose code compare compared comparing comparison config configuration configurations could current
    default defaults determine did different do does each effect effects either else every exactly experiment experiments explore
    figure find finding fit for from get give given go goal good grid has have help hold holding how i if impact improve in
    influence into investigate is it its just keep keeping know learn least less let lets like list look make matter matters me
    mean measure metric model more most much my near need network no not now of off on one only optimal optimize optimise or other
    our out over parameter parameters per performance performs pick plan please possible project quick quickly range ranges ranging
    report result results right run running runs same scan script search see select set setting settings should show simple sweep
    sweeping take test than that the their them then there these they this those through to top train training tried try trying
    tune tuning up use used using value values various vary varying versus vs want was way we well what when where whether which
    while will with within without work works would you your baselines against current number hyperparameters hyperparameter
    matters mean std deviation lowest highest maximize maximise minimize minimise reduce increase decrease lower higher
    maximum minimum hurting losing keeping sacrificing degrading harming preserving raise python fixed constant everything rest""".split()
)
_TELLING = {"the", "for", "with", "and", "of", "to", "find", "best", "between", "from", "is", "try", "compare", "vary", "sweep", "tune",
            "what", "which", "how", "in", "by", "at", "over", "test", "train", "use", "seeds", "run", "runs"}  # fmt: skip


def is_english(words: Words) -> bool:
    """Short notes such as `lr 0.1/0.01` pass: there is nothing foreign in them."""
    spoken = [token.text for token in words.tokens if token.is_word]
    if any(not text.isascii() for text in spoken) and not any(text in _TELLING for text in spoken):
        return False
    unread = [token for token in words.unread() if token.is_word and token.text not in FILLER]
    return len(unread) < 4 or len(unread) * 2 < len(spoken)
