"""Words of a request that carry nothing for a plan, and whether a text is English at all."""

from __future__ import annotations

from labwright.planning.goals.words import Words

FILLER = {
    "budget", "judged", "limit", "repeat", "repeated", "repeating", "total", "hours", "overall", "primary",
    "a", "about", "above", "across", "after", "again", "against", "all", "also", "among", "an", "and", "any", "are",
    "as", "at", "average", "baseline", "baselines", "be", "because", "been", "best", "better", "between", "both",
    "but", "by", "can", "care", "check", "choose", "code", "compare", "compared", "comparing", "comparison", "config",
    "configuration", "configurations", "constant", "could", "current", "decrease", "default", "defaults", "degrading",
    "determine", "deviation", "did", "different", "do", "does", "each", "effect", "effects", "either", "else",
    "every", "everything", "exactly", "experiment", "experiments", "explore", "figure", "find", "finding", "fit",
    "fixed", "for", "from", "get", "give", "given", "go", "goal", "good", "grid", "harming", "has", "have", "help",
    "higher", "highest", "hold", "holding", "how", "hurting", "hyperparameter", "hyperparameters", "i", "if",
    "impact", "improve", "in", "increase", "influence", "into", "investigate", "is", "it", "its", "just", "keep",
    "keeping", "know", "learn", "least", "less", "let", "lets", "like", "list", "look", "losing", "lower", "lowest",
    "make", "matter", "matters", "maximise", "maximize", "maximum", "me", "mean", "measure", "metric", "minimise",
    "minimize", "minimum", "model", "more", "most", "much", "my", "near", "need", "network", "no", "not", "now",
    "number", "of", "off", "on", "one", "only", "optimal", "optimise", "optimize", "or", "other", "our", "out",
    "over", "parameter", "parameters", "per", "performance", "performs", "pick", "plain", "plan", "please", "possible",
    "preserving", "project", "python", "quick", "quickly", "raise", "range", "ranges", "ranging", "reduce", "report",
    "rest", "result", "results", "right", "run", "running", "runs", "sacrificing", "same", "scan", "script", "search",
    "see", "select", "set", "setting", "settings", "should", "show", "simple", "std", "sweep", "sweeping", "take",
    "test", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "through",
    "to", "top", "train", "training", "tried", "try", "trying", "tune", "tuned", "tuning", "up", "use", "used", "using",
    "value", "values", "various", "vary", "varying", "versus", "vs", "want", "was", "way", "we", "well", "what",
    "when", "where", "whether", "which", "while", "will", "with", "within", "without", "work", "works", "would",
    "instead", "rather", "x", "you", "your", "reproduce", "replicate", "rerun", "variance", "stability", "nothing",
}  # fmt: skip
_TELLING = {
    "the", "and", "with", "of", "to", "find", "best", "between", "from", "is", "try", "what", "which", "how", "by",
    "your", "all", "you", "it", "this", "that",
}  # fmt: skip


_FOREIGN = {"und", "oder", "zwischen", "sowie", "avec", "entre", "ou", "con", "para"}  # as they stand beside values


def is_english(words: Words) -> bool:
    """Short notes such as `lr 0.1/0.01` pass: there is nothing foreign in them."""
    spoken = {token.text for token in words.tokens if token.is_word}
    if spoken & _TELLING:
        return True
    unread = [token.text for token in words.unread() if token.is_word and token.text not in FILLER]
    return len(unread) < 4 and not set(unread) & _FOREIGN and all(text.isascii() for text in spoken)
