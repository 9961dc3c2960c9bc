"""What an editor asks about a `.mfma` text, and the language server that answers it."""
