"""Commands on conversations, approvals and memories."""
