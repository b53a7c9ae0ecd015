"""The noise laws, one file a law, and the additive mechanism."""
