"""As in Triton."""
