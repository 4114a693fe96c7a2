"""The change from one filter of the stack to the next: in its two places, in another mode, or as it is now."""
